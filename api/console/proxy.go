package console

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"modelrelay/activities"
	"modelrelay/api/console/inprocess"
	"modelrelay/storage/audit"
)

// request returns a request to the API with the method of the view's request, for a token or an operator.
func (v *View) request(user User, path string, body io.Reader) (*http.Request, error) {
	return inprocess.NewRequest(v.asCaller(user), v.R, v.R.Method, path, body)
}

// call sends the API a request with the method of the view's request. The caller closes the body of the answer.
func (v *View) call(user User, path string, body io.Reader) (*http.Response, error) {
	r, err := v.request(user, path, body)
	if err != nil {
		return nil, err
	}
	return inprocess.Transport{Handler: v.s.o.API}.RoundTrip(r)
}

// proxied are the prefixes of the paths of operations that pages call as a token.
func proxied() []string {
	return []string{
		"/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1beta/models/", "/v1/images/generations", "/v1/audio/speech",
		"/v1/audio/transcriptions", "/v1/videos", "/v1/models",
	}
}

// paysHeader names the token of a call if an operator has agreed that a token other than the console's own pays. A form or a link cannot
// send the header.
const paysHeader = "Console-Pays"

// proxy passes a request of a page's script to the API as a token: the holder's own, or the token that an operator names. The answer is
// streamed, with the policy of the API, under which a browser does not treat it as a page.
func (s *Server) proxy(v *View) {
	token := v.R.PathValue("token")
	prefix := Root + "/as/" + inprocess.Segment(token)
	path, found := strings.CutPrefix(v.R.URL.EscapedPath(), prefix)
	known := slices.ContainsFunc(proxied(), func(begin string) bool {
		return path == begin || strings.HasPrefix(path, strings.TrimSuffix(begin, "/")+"/")
	})
	if !found || !known || strings.Contains(path, "..") {
		s.fail(v, http.StatusNotFound, "refused.nothing")
		return
	}
	user := v.readerOf(token)
	if !safe(v.R.Method) { // a call, for which the token pays
		user.Role = Holder
	}
	switch {
	case v.User.Role == Holder && v.User.Owner == token:
	case v.User.Role == Operator:
	default:
		s.fail(v, http.StatusNotFound, "refused.nothing")
		return
	}
	if token == consoleToken && v.User.Role == Operator {
		id, err := consoleTokenID(v, !safe(v.R.Method))
		if err != nil {
			s.proxyFailed(v, err)
			return
		}
		user.Owner = id
	}
	switch {
	case v.User.Role != Operator:
	case !safe(v.R.Method) && token != consoleToken && v.R.Header.Get(paysHeader) != token:
		s.proxyFailed(v, &Problem{Status: http.StatusPreconditionRequired, Message: v.T("try.pays.missing")})
		return
	case !safe(v.R.Method):
		v.note(v.User, audit.TryAsToken, user.Owner, "")
	case token != consoleToken && strings.HasSuffix(path, "/content"):
		v.note(v.User, watchWord, taskOf(path), "")
	}
	if v.R.URL.RawQuery != "" {
		path += "?" + v.R.URL.RawQuery
	}
	r, err := v.request(user, path, v.R.Body)
	if err != nil {
		s.fail(v, http.StatusNotFound, "refused.nothing")
		return
	}
	r.ContentLength, r.TransferEncoding = v.R.ContentLength, v.R.TransferEncoding
	r.Proto, r.ProtoMajor, r.ProtoMinor = v.R.Proto, v.R.ProtoMajor, v.R.ProtoMinor
	r.Header.Del("Content-Type")
	inprocess.Pass(r.Header, v.R.Header, "Content-Type", "Accept", "Idempotency-Key", "Range", "If-Range", "If-None-Match", "Last-Event-Id",
		"Anthropic-Version")
	for _, name := range []string{"Content-Security-Policy", "Cross-Origin-Opener-Policy", "Vary"} {
		v.W.Header().Del(name)
	}
	s.o.API.ServeHTTP(v.W, r)
}

func taskOf(path string) string {
	path = strings.TrimSuffix(path, "/content")
	return path[strings.LastIndexByte(path, '/')+1:]
}

// proxyFailed answers a script with the reason why its call was not made.
func (s *Server) proxyFailed(v *View, err error) {
	problem := v.problem(err)
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

// contentPath returns the API's path of a task's outputs.
func (v *View) contentPath(id string) string {
	switch {
	case v.User.Role != Holder:
		return "/admin/tasks/" + inprocess.Segment(id) + "/content"
	case activities.KindOf(id) == activities.KindCall:
		return "/v1/tasks/" + inprocess.Segment(id) + "/result"
	default:
		return "/v1/videos/" + inprocess.Segment(id) + "/content"
	}
}

// taskContent passes on a task's video, a picture of it, or the answer of a call, with ranges.
func (s *Server) taskContent(v *View) {
	path := v.contentPath(v.R.PathValue("id"))
	q := url.Values{}
	for _, name := range []string{"index", "variant"} {
		if value := v.Query(name); value != "" {
			q.Set(name, value)
		}
	}
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	r, err := v.request(v.User, path, nil)
	if err != nil {
		s.fail(v, http.StatusNotFound, "refused.nothing")
		return
	}
	inprocess.Pass(r.Header, v.R.Header, "Range", "If-Range", "If-None-Match", "If-Modified-Since")
	for _, name := range []string{"Content-Security-Policy", "Vary"} {
		v.W.Header().Del(name)
	}
	if v.Query("download") != "" {
		v.W.Header().Set("Content-Disposition", `attachment; filename="`+fileName(v.R.PathValue("id"))+`"`)
	}
	s.o.API.ServeHTTP(v.W, r)
}

// fileName returns the file name of a video, or of an answer, which has no extension.
func fileName(id string) string {
	name := strings.Map(func(c rune) rune {
		if c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return -1
	}, id)
	if activities.KindOf(id) == activities.KindVideo {
		name += ".mp4"
	}
	return name
}
