package upstream_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// inlineJobs are jobs at a server that answers with a body.
func inlineJobs(t *testing.T, body string) (*upstream.Jobs, providers.Target) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
	t.Cleanup(server.Close)
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	return upstream.NewJobs(client, upstream.JobVendor{Name: "test"}),
		providers.Target{Channel: providers.Channel{BaseURL: server.URL}, Key: "k"}
}

// TestOpenInline: the videos among the members of a name are read in their order, however they are written, and one that breaks
// off is no shorter video.
func TestOpenInline(t *testing.T) {
	t.Parallel()
	one, two := base64.StdEncoding.EncodeToString([]byte(clip+"one")), base64.StdEncoding.EncodeToString([]byte(clip+"two"))
	escaped := strings.ReplaceAll(strings.ReplaceAll(two, "/", `\/`), "=", `\u003d`)
	whole := `{"\"data\":":"data","text":"\"data\": \"x\\","data":7,"list":[{"data":"iVBORw0KGgo="},{"data" : "` + one[:40] + `\r\n` +
		one[40:] + `"},{"da\u0074a":"` + escaped + `"}]}`
	for _, tc := range []struct {
		body   string
		output int
		want   string
		opens  bool
	}{
		{whole, 0, clip + "one", true},
		{whole, 1, clip + "two", true},
		{whole, 2, "", false},
		{whole[:strings.Index(whole, one[40:])+5], 0, "", true},
		{`{"data":"` + one + "*" + `"}`, 0, "", true},
		{`{"data":"`, 0, "", false},
		{`{"data`, 0, "", false},
		{``, 0, "", false},
	} {
		jobs, to := inlineJobs(t, tc.body)
		video, err := jobs.OpenInline(t.Context(), to, upstream.JobRequest{Path: "/"}, "data", tc.output)
		if (err == nil) != tc.opens {
			t.Errorf("%s, %d: got %v", tc.body, tc.output, err)
		}
		if err != nil {
			continue
		}
		raw, err := io.ReadAll(video.Body)
		_ = video.Body.Close()
		if tc.want == "" && err == nil || tc.want != "" && (err != nil || string(raw) != tc.want) {
			t.Errorf("%s, %d: got %q, %v, want %q", tc.body, tc.output, raw, err, tc.want)
		}
	}
}

// TestInlineAnswer: what stands around a long string is read, and escapes are not cut in two.
func TestInlineAnswer(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x", `\"`, `\\`, `\u00e4`, `\ud83d\ude00`, "ä"} {
		for shift := range 13 {
			jobs, to := inlineJobs(t, `{"before":1,"long":"`+strings.Repeat(".", shift)+strings.Repeat(text, (128<<10)/len(text)+1)+
				`","after":[{"word":"w"}]}`)
			answer, err := jobs.Do(t.Context(), to, upstream.JobRequest{Path: "/", Inline: true})
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Before int    `json:"before"`
				Long   string `json:"long"`
				After  []struct {
					Word string `json:"word"`
				} `json:"after"`
			}
			if err := json.Unmarshal(answer.Body, &got); err != nil || got.Before != 1 || len(got.After) != 1 || got.After[0].Word != "w" ||
				got.Long == "" || len(answer.Body) > 128<<10 {
				t.Errorf("%s after %d: got %d bytes, %v", text, shift, len(answer.Body), err)
			}
			if shift > 0 && len(text) == 1 {
				break
			}
		}
	}
}

// FuzzOpenInline: no answer makes it panic, and what it opens is a video.
func FuzzOpenInline(f *testing.F) {
	f.Add([]byte(`{"data":"AAAAGGZ0eXBpc29tAAACAGlzb21pc28y"}`))
	f.Add([]byte(`{"data":"\u00`))
	f.Add([]byte(`"data":"\`))
	f.Fuzz(func(t *testing.T, body []byte) {
		jobs, to := inlineJobs(t, string(body))
		video, err := jobs.OpenInline(t.Context(), to, upstream.JobRequest{Path: "/"}, "data", 0)
		if err != nil {
			return
		}
		defer video.Body.Close()
		_, _ = io.Copy(io.Discard, video.Body) // may break off
		if !strings.HasPrefix(video.ContentType, "video/") {
			t.Errorf("opened %q as %s", body, video.ContentType)
		}
	})
}
