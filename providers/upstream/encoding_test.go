package upstream_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"modelrelay/providers/upstream"
)

// TestEncodedAnswers: an upstream that compresses unasked is read as any other, its refusals too.
func TestEncodedAnswers(t *testing.T) {
	t.Parallel()
	text := strings.Repeat(`{"error":"plain"}`, 1000)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := io.WriteString(w, text)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	answer := func(status int) string {
		return serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write(packed.Bytes())
		}).URL
	}
	if fault := sendFault(t, client(t, nil), post(t.Context(), t, answer(http.StatusBadRequest))); string(fault.Upstream.Body) != text {
		t.Errorf("refused with %.40q", fault.Upstream.Body)
	}
	resp, err := upstream.Send(client(t, nil), post(t.Context(), t, answer(http.StatusOK)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil || string(got) != text || resp.Header.Get("Content-Encoding") != "" ||
		resp.Header.Get("Content-Length") != "" {
		t.Errorf("%v, %.40q, %v", err, got, resp.Header)
	}
}
