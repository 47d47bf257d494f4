package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// AnswerTimeout is the longest wait for the next bytes of an answer.
const AnswerTimeout = 30 * time.Second

// Answers returns a check that fails until the path is answered with status 200.
func (s *Stage) Answers(path string) func(ctx context.Context, addr string) error {
	return func(ctx context.Context, addr string) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
		if err != nil {
			return err
		}
		response, err := s.Client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("answered %s", response.Status)
		}
		return Drain(response.Body)
	}
}

// GetJSON reads a JSON document that is not part of a load.
func (s *Stage) GetJSON(ctx context.Context, url string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	return DoJSON(s.Client, request, into)
}

// StatusError is an answer with a status other than 2xx.
type StatusError struct {
	Status  int
	message string
}

func (e *StatusError) Error() string { return e.message }

// DoJSON sends a request and decodes the answer. A status other than 2xx is a *StatusError.
func DoJSON(client *http.Client, request *http.Request, into any) error {
	response, err := client.Do(request) //nolint:gosec // to processes that the stage has started
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case response.StatusCode/100 != 2:
		return &StatusError{response.StatusCode, fmt.Sprintf("answered %s: %.300s", response.Status, body)}
	}
	return json.Unmarshal(body, into)
}

// Drain reads a body to its end.
func Drain(body io.Reader) error {
	_, err := io.Copy(io.Discard, body)
	return err
}
