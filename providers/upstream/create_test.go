package upstream_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// TestDraftKeepsFirstFault: of several faults a create has the first, and after it no input is read.
func TestDraftKeepsFirstFault(t *testing.T) {
	t.Parallel()
	model := providers.VideoModel{Seconds: providers.AnyWord()}
	d := upstream.NewDraft(providers.VideoRequest{Seconds: "1.5", Extra: []byte(`{"stream":true}`)}, "m", model, nil, "stream")
	d.Refuse(errors.New("a later fault"))
	opened := false
	text := d.Base64(t.Context(), providers.Media{Open: func(context.Context) (io.ReadCloser, error) {
		opened = true
		return nil, errors.New("not reached")
	}})
	_, err := d.Create("/videos", 0)
	if fault := providers.AsFault(err); fault == nil || fault.Param != "stream" || text != "" || opened {
		t.Errorf("got %v, text %q, opened %t, want a refusal of 'stream' alone", err, text, opened)
	}
}

// TestDraftBound: a create has at most so many bytes.
func TestDraftBound(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]bool{0: true, 100: true, 10: false} {
		d := upstream.NewDraft(providers.VideoRequest{Prompt: "p"}, "m", providers.VideoModel{}, nil)
		d.Members["prompt"] = strings.Repeat("p", 20)
		if _, err := d.Create("/videos", most); (err == nil) != want {
			t.Errorf("%d bytes: got %v", most, err)
		}
	}
}

// TestRefusedWith200: a refusal that an answer of status 200 holds has the meaning of its own status, and the vendor's reason.
func TestRefusedWith200(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"code":`+r.URL.Query().Get("code")+`,"message":"too long"}`)
	}))
	t.Cleanup(server.Close)
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	jobs := upstream.NewJobs(client, upstream.JobVendor{Name: "any", Code: []string{"code"}, Refused: func(answer upstream.Doc) int {
		return upstream.Codes[int]{http.StatusBadRequest: {"7", "8"}}.Of(string(answer.Get("code")), 0)
	}})
	to := providers.Target{Channel: providers.Channel{BaseURL: server.URL}, Key: "k"}
	for code, want := range map[string]providers.Kind{"0": "", "8": providers.Invalid} {
		_, err := jobs.Read(t.Context(), to, upstream.Create("/?code="+code, []byte(`{}`)))
		fault := providers.AsFault(err)
		switch {
		case want == "" && fault != nil:
			t.Errorf("code %s: got %v", code, err)
		case want != "" && (fault == nil || fault.Kind != want || fault.Code != code || !strings.HasSuffix(fault.Message, "too long")):
			t.Errorf("code %s: got %+v, want %s", code, fault, want)
		}
	}
}
