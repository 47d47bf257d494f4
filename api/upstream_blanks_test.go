package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"modelrelay/providers"
)

// TestBlanksPass: what an upstream sends while it thinks reaches the client as it comes, and what follows counts.
func TestBlanksPass(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	g := newGateway(t, func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: read}, nil
	}, nil)
	front := httptest.NewServer(g.Handler())
	defer front.Close()
	sent := make(chan error, 1)
	next := make(chan struct{})
	answer := `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}`
	go func() {
		for range 3 { // each after the client has read the one before
			if _, err := io.WriteString(write, " \n"); err != nil {
				sent <- err
				return
			}
			<-next
		}
		_, err := io.WriteString(write, answer)
		_ = write.Close()
		sent <- err
	}()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/v1/chat/completions", strings.NewReader(smallChat))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+goodKey)
	resp, err := front.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for range 3 {
		blanks := make([]byte, 2)
		if _, err := io.ReadFull(resp.Body, blanks); err != nil || string(blanks) != " \n" {
			t.Fatalf("got %q, %v", blanks, err)
		}
		next <- struct{}{}
	}
	rest, err := io.ReadAll(resp.Body)
	if err != nil || string(rest) != answer || <-sent != nil {
		t.Errorf("got %q, %v", rest, err)
	}
	front.Close() // the handler has recorded by then
	if len(g.ledger.entries) != 1 || g.ledger.entries[0].InputTokens != 3 || g.ledger.entries[0].OutputTokens != 4 {
		t.Errorf("recorded %+v", g.ledger.entries)
	}
}
