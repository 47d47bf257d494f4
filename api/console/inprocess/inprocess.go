// Package inprocess calls the API inside the process, on behalf of a browser's request or of a command. It knows no page and no
// session: who a call acts for stands in the context that its caller makes.
package inprocess

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// maxAnswer bounds what one call of the API may answer to a page.
const maxAnswer = 8 << 20

// Problem is the API's refusal of a call, in its words.
type Problem struct {
	Status    int
	Message   string
	Code      string
	Param     string // the field that is wrong, "" for none
	RequestID string
	Retry     int // seconds to wait; 0: not said
}

// Error gives the message.
func (p *Problem) Error() string { return p.Message }

// Away tells whether a service that the API needs did not answer.
func (p *Problem) Away() bool { return p.Status == http.StatusServiceUnavailable }

// Missing tells whether there is no such thing.
func (p *Problem) Missing() bool { return p.Status == http.StatusNotFound }

// Changed tells whether the thing is another than it was.
func (p *Problem) Changed() bool { return p.Status == http.StatusConflict }

// API is what calls go to.
type API struct{ Handler http.Handler }

// Do makes a call because of a browser's request, nil for a command. body is sent as JSON, nil for none; the answer is read as JSON into a
// value, which may be nil. The error is a *Problem where the API refuses.
func (a API) Do(ctx context.Context, from *http.Request, method, path string, body, into any) error {
	var sent io.Reader = http.NoBody // a handler may read what has no body
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encode for %s: %w", path, err)
		}
		sent = bytes.NewReader(raw)
	}
	r, err := a.Request(ctx, from, method, path, sent)
	if err != nil {
		return err
	}
	answer := newRecorder()
	a.Handler.ServeHTTP(answer, r)
	if answer.over {
		return &Problem{Status: http.StatusBadGateway, Message: "The answer is too large for a page."}
	}
	if answer.status >= http.StatusBadRequest {
		return problemOf(answer)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer.body.Bytes(), into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// Request is one of the API, which the caller serves itself. Nothing of the browser's own goes with it but where it comes from
// and what it calls itself; from is nil for a command. body is JSON unless the caller changes its type, nil for none.
func (a API) Request(ctx context.Context, from *http.Request, method, path string, body io.Reader) (*http.Request, error) {
	typed := body != nil
	if body == nil {
		body = http.NoBody // a handler may read what a server gives it
	}
	r, err := http.NewRequestWithContext(ctx, method, path, body)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", path, err)
	}
	r.RequestURI = path
	if from != nil {
		r.RemoteAddr, r.Host, r.TLS = from.RemoteAddr, from.Host, from.TLS
		for _, name := range []string{"X-Forwarded-For", "Forwarded", "User-Agent"} {
			if values := from.Header.Values(name); len(values) > 0 {
				r.Header[name] = values
			}
		}
	}
	if typed {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

// problemOf reads a refusal in the shape of the operator's operations and of OpenAI's.
func problemOf(a *recorder) *Problem {
	p := &Problem{Status: a.status, RequestID: a.header.Get("X-Request-Id")}
	p.Retry, _ = strconv.Atoi(a.header.Get("Retry-After"))
	var said struct {
		Error struct {
			Message string  `json:"message"`
			Code    string  `json:"code"`
			Param   *string `json:"param"`
		} `json:"error"`
	}
	if json.Unmarshal(a.body.Bytes(), &said) == nil {
		p.Message, p.Code = said.Error.Message, said.Error.Code
		if said.Error.Param != nil {
			p.Param = *said.Error.Param
		}
	}
	if p.Message == "" {
		p.Message = http.StatusText(a.status)
	}
	return p
}

// AsProblem is the API's refusal in an error; nil for another error.
func AsProblem(err error) *Problem {
	p, _ := errors.AsType[*Problem](err)
	return p
}

// recorder keeps an answer of the API, up to most bytes.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
	most   int
	over   bool
}

func newRecorder() *recorder { return &recorder{header: make(http.Header), most: maxAnswer} }

// Header is the answer's.
func (a *recorder) Header() http.Header { return a.header }

// WriteHeader notes the status.
func (a *recorder) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
}

// Write keeps the body, up to a bound.
func (a *recorder) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.body.Len()+len(p) > a.most {
		a.over = true
		return 0, io.ErrShortWrite
	}
	return a.body.Write(p)
}

// Read is the body of the answer to a GET, whatever its status.
func (a API) Read(ctx context.Context, from *http.Request, path string) ([]byte, error) {
	r, err := a.Request(ctx, from, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	answer := newRecorder()
	a.Handler.ServeHTTP(answer, r)
	return answer.body.Bytes(), nil
}

// Segment is a text as one segment of a path.
func Segment(text string) string {
	if text == "." || text == ".." { // which a server would take for folders
		return strings.ReplaceAll(text, ".", "%2E")
	}
	return url.PathEscape(text)
}
