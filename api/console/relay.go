package console

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// relayed are the operations that pages call as a token, by the beginning of their paths.
func relayed() []string {
	return []string{
		"/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1beta/models/", "/v1/images/generations", "/v1/audio/speech",
		"/v1/audio/transcriptions", "/v1/videos", "/v1/models",
	}
}

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
	if v.Who.Role == Operator && !safe(v.R.Method) {
		s.note(v, Act{Who: v.Who, What: tryWord, Subject: who.Owner})
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
