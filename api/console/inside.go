package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
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

// Get reads a path of the API for who has signed in, as JSON into a value. The error is a *Problem where the API refuses.
func (v *View) Get(path string, query url.Values, into any) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return v.Do(http.MethodGet, path, nil, into)
}

// Do calls the API for who has signed in. body is sent as JSON, nil for none; into may be nil.
func (v *View) Do(method, path string, body, into any) error {
	return v.DoAs(v.Who, method, path, body, into)
}

// DoAs is Do for somebody else, whom the caller has the right to act for.
func (v *View) DoAs(who Who, method, path string, body, into any) error {
	var sent io.Reader = http.NoBody // a handler may read what has no body
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encode for %s: %w", path, err)
		}
		sent = bytes.NewReader(raw)
	}
	r, err := v.inside(v.R.Context(), who, method, path, sent)
	if err != nil {
		return err
	}
	answer := &recorder{header: make(http.Header), most: maxAnswer}
	v.s.o.API.ServeHTTP(answer, r)
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

// inside makes a request of the API that acts for somebody. Nothing of the browser's own goes with it but where it comes
// from and what it calls itself.
func (v *View) inside(ctx context.Context, who Who, method, path string, body io.Reader) (*http.Request, error) {
	typed := body != nil
	if body == nil {
		body = http.NoBody // a handler may read what a server gives it
	}
	r, err := http.NewRequestWithContext(v.s.o.As(ctx, who), method, path, body)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", path, err)
	}
	r.RequestURI = path
	r.RemoteAddr, r.Host, r.TLS = v.R.RemoteAddr, v.R.Host, v.R.TLS
	for _, name := range []string{"X-Forwarded-For", "Forwarded", "User-Agent"} {
		if values := v.R.Header.Values(name); len(values) > 0 {
			r.Header[name] = values
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

// asProblem is the API's refusal in an error; nil for another error.
func asProblem(err error) *Problem {
	p, _ := errors.AsType[*Problem](err)
	return p
}

// recorder keeps an answer of the API.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
	most   int
	over   bool
}

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

// Segment is a text as one segment of a path.
func Segment(text string) string {
	if text == "." || text == ".." { // which a server would take for folders
		return strings.ReplaceAll(text, ".", "%2E")
	}
	return url.PathEscape(text)
}

// relayed are the operations that pages call as a token, by the beginning of their paths.
func relayed() []string {
	return []string{
		"/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1beta/models/", "/v1/images/generations", "/v1/audio/speech",
		"/v1/audio/transcriptions", "/v1/videos", "/v1/models",
	}
}

// paysHeader names the token that an operator has agreed shall pay for a call, where it is not the console's own. A page asks
// first; the header is what says so to the server, and no form or link can send it.
const paysHeader = "Console-Pays"

// relay hands a request of a page's script to the API as a token: the holder's own, or the one that an operator names.
// The answer passes as it comes, with the API's own policy, under which it is no page.
func (s *Server) relay(v *View) {
	token := v.R.PathValue("token")
	prefix := Root + "/as/" + Segment(token)
	path, found := strings.CutPrefix(v.R.URL.EscapedPath(), prefix)
	known := slices.ContainsFunc(relayed(), func(begin string) bool {
		return path == begin || strings.HasPrefix(path, strings.TrimSuffix(begin, "/")+"/")
	})
	if !found || !known || strings.Contains(path, "..") {
		s.fail(v, http.StatusNotFound, "refused.nothing")
		return
	}
	who := Who{Kind: "token", Owner: token, Role: Holder}
	switch {
	case v.Who.Role == Holder && v.Who.Owner == token:
	case v.Who.Role == Operator:
	default:
		s.fail(v, http.StatusNotFound, "refused.nothing")
		return
	}
	if token == consoleToken && v.Who.Role == Operator {
		id, err := v.consoleTokenID(!safe(v.R.Method))
		if err != nil {
			s.relayFailed(v, err)
			return
		}
		who.Owner = id
	}
	switch {
	case v.Who.Role != Operator:
	case !safe(v.R.Method) && token != consoleToken && v.R.Header.Get(paysHeader) != token:
		s.relayFailed(v, &Problem{Status: http.StatusPreconditionRequired, Message: v.T("try.pays.missing")})
		return
	case !safe(v.R.Method):
		s.note(v, Act{Who: v.Who, What: tryWord, Subject: who.Owner})
	case token != consoleToken && strings.HasSuffix(path, "/content"):
		s.note(v, Act{Who: v.Who, What: watchWord, Subject: taskOf(path)})
	}
	if v.R.URL.RawQuery != "" {
		path += "?" + v.R.URL.RawQuery
	}
	r, err := v.inside(v.R.Context(), who, v.R.Method, path, v.R.Body)
	if err != nil {
		s.fail(v, http.StatusNotFound, "refused.nothing")
		return
	}
	r.ContentLength, r.TransferEncoding = v.R.ContentLength, v.R.TransferEncoding
	r.Proto, r.ProtoMajor, r.ProtoMinor = v.R.Proto, v.R.ProtoMajor, v.R.ProtoMinor
	r.Header.Del("Content-Type")
	for _, name := range []string{"Content-Type", "Accept", "Idempotency-Key", "Range", "If-Range", "If-None-Match", "Last-Event-Id", "Anthropic-Version"} {
		if values := v.R.Header.Values(name); len(values) > 0 {
			r.Header[name] = values
		}
	}
	for _, name := range []string{"Content-Security-Policy", "Cross-Origin-Opener-Policy", "Vary"} {
		v.W.Header().Del(name)
	}
	s.o.API.ServeHTTP(v.W, r)
}

// taskOf is the id in the path of a task's content.
func taskOf(path string) string {
	path = strings.TrimSuffix(path, "/content")
	return path[strings.LastIndexByte(path, '/')+1:]
}

// relayFailed answers a script with what kept its call from being made.
func (s *Server) relayFailed(v *View, err error) {
	problem := asProblem(err)
	if problem == nil {
		s.failed(v, err)
		return
	}
	raw, _ := json.Marshal(map[string]any{"error": map[string]string{"message": problem.Message}}) // texts always encode
	v.W.Header().Set("Content-Type", "application/json")
	v.W.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
	v.W.WriteHeader(problem.Status)
	_, _ = v.W.Write(raw)
}
