package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// AnswerTimeout is the longest wait for the next bytes of an answer.
const AnswerTimeout = 30 * time.Second

// Answers tells whether a path answers 200.
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

// GetJSON reads a JSON document, for what is not part of a load. An empty key sends none.
func (s *Stage) GetJSON(ctx context.Context, url, key string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	return s.DoJSON(request, into)
}

// DoJSON sends a request and decodes the answer, which must say success.
func (s *Stage) DoJSON(request *http.Request, into any) error { return DoJSON(s.Client, request, into) }

// Order gives an upstream an order: a POST of a JSON document to its control interface.
func (s *Stage) Order(ctx context.Context, upstream *Child, path, body string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+upstream.Addr+"/_control"+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	var answer json.RawMessage
	if err := s.DoJSON(request, &answer); err != nil {
		return fmt.Errorf("control the upstream: %w", err)
	}
	return nil
}

// StatusError is an answer that says no success.
type StatusError struct {
	Status int
	words  string
}

func (e *StatusError) Error() string { return e.words }

// DoJSON sends a request over a client and decodes the answer, which must say success. Another's error is a *StatusError.
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
