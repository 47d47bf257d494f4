package generic_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"modelrelay/providers"
	"modelrelay/providers/generic"
	"modelrelay/providers/providertest"
	"modelrelay/providers/upstream"
)

const job = "video_01k9z7hq3v5m8r2c4d6e8f0g2h"

func TestVideo(t *testing.T) {
	t.Parallel()
	providertest.TestVideo(t, providertest.VideoSubject{
		New:        func(client *http.Client) providers.VideoAdapter { return generic.NewVideos(client) },
		Channel:    providers.Channel{Vendor: "generic"},
		Answers:    os.DirFS("testdata/video"),
		Step:       step,
		Authorized: authorized,
		Job:        job,
		Failure:    providers.VideoFailure{Code: "moderation_blocked", Message: "The video was blocked by our moderation system."},
		IdempotencyKey: func(req *http.Request) string {
			return req.Header.Get("Idempotency-Key")
		},
		Upload: upload, VideoTraits: providertest.VideoTraits{BareUploads: true},
	})
}

func step(req *http.Request) providertest.VideoStep {
	switch req.Method + " " + req.URL.EscapedPath() {
	case "POST /video/generations":
		return providertest.VideoSubmit
	case "GET /video/generations/" + job:
		return providertest.VideoPoll
	case "GET /v1/videos/" + job + "/content", "GET /videos/" + job + "/content":
		return providertest.VideoContent
	case "POST /videos/" + job + "/remix":
		return providertest.VideoRemix
	case "POST /video/generations/" + job + "/cancel":
		return providertest.VideoCancel
	case "GET /openapi.json":
		return providertest.VideoFind
	}
	return ""
}

func authorized(req *http.Request, key providers.Secret) bool {
	return req.Header.Get("Authorization") == "Bearer "+key.Reveal()
}

func upload(req *http.Request) (providertest.Upload, error) {
	var body struct {
		Image string `json:"image"`
	}
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
		return providertest.Upload{}, err
	}
	text, ok := strings.CutPrefix(body.Image, "data:image/png;base64,")
	if !ok {
		return providertest.Upload{}, fmt.Errorf("got image %.40q", body.Image)
	}
	data, err := base64.StdEncoding.DecodeString(text)
	return providertest.Upload{Data: data}, err
}

func newVideos(t *testing.T) *generic.Videos {
	t.Helper()
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	return generic.NewVideos(client)
}

func target(base string) providers.Target {
	return providers.Target{Channel: providers.Channel{Name: "main", BaseURL: base}, Key: "upstream-credential", Model: "up"}
}

// TestVideoStrays: answers of gateways that have the path and stray from the contract.
func TestVideoStrays(t *testing.T) {
	t.Parallel()
	type status = providers.VideoStatus
	done := func(word string, outputs int) status {
		return status{State: providers.JobDone, Progress: -1, VendorState: word, Outputs: outputs}
	}
	failed := func(word, code, message string) status {
		return status{State: providers.JobFailed, Progress: -1, VendorState: word, Failure: &providers.VideoFailure{Code: code, Message: message}}
	}
	wrapped := done("SUCCESS", 1)
	wrapped.Progress = 100
	timed := done("completed", 1)
	timed.Took = 3 * time.Minute
	measured := done("completed", 2)
	measured.Seconds, measured.Width, measured.Height = "5.5", 640, 360
	for _, tc := range []struct {
		name, body string
		want       status
		links      []string
	}{
		{name: "how long it took", body: `{"status":"completed","created_at":1758941485,"completed_at":1758941665}`, want: timed},
		{
			name: "in data", body: `{"code":"success","message":"","data":{"id":7,"task_id":"task_1","status":"SUCCESS","progress":"100%","result_url":"https://a/1.mp4"}}`,
			want: wrapped, links: []string{"https://a/1.mp4"},
		},
		{
			name: "link in the field of the reason", body: `{"data":{"task_id":"t","status":"SUCCESS","fail_reason":"https://a/1.mp4"}}`,
			want: done("SUCCESS", 1), links: []string{"https://a/1.mp4"},
		},
		{
			name: "failed in data", body: `{"data":{"task_id":"t","status":"FAILURE","fail_reason":"unsafe"}}`,
			want: failed("FAILURE", "upstream_failure", "unsafe"),
		},
		{
			name: "not started", body: `{"data":{"task_id":"t","status":"NOT_START","progress":"0%"}}`,
			want: status{State: providers.JobQueued, VendorState: "NOT_START"},
		},
		{
			name: "in progress in capitals", body: `{"data":{"task_id":"t","status":"IN_PROGRESS","progress":"45%"}}`,
			want: status{State: providers.JobRunning, Progress: 45, VendorState: "IN_PROGRESS"},
		},
		{
			name: "succeeded", body: `{"task_id":"t","status":"succeeded","url":"https://a/1.mp4"}`, want: done("succeeded", 1),
			links: []string{"https://a/1.mp4"},
		},
		{
			name: "several", body: `{"status":"completed","duration":5.5,"width":640,"height":360,"url":"/1","urls":["/1","/2"]}`,
			want: measured, links: []string{"/1", "/2"},
		},
		{name: "no links", body: `{"status":"completed","url":null,"urls":[]}`, want: done("completed", 1)},
		{name: "half a size", body: `{"status":"completed","width":640}`, want: done("completed", 1)},
		{name: "numeric code", body: `{"status":"failed","error":{"code":1301,"message":"unsafe"}}`, want: failed("failed", "1301", "unsafe")},
		{name: "bare error", body: `{"status":"failed","error":"no credits"}`, want: failed("failed", "upstream_failed", "no credits")},
		{
			name: "no error", body: `{"status":"cancelled"}`,
			want: failed("cancelled", "upstream_cancelled", `The upstream's job ended as "cancelled".`),
		},
		{
			name: "the key and the client's link in the error",
			body: `{"status":"failed","error":{"code":"x","message":"upstream-credential at https://h/a.png?sig=hush"}}`,
			want: failed("failed", "x", "*** at https://h/a.png?…"),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, links, err := generic.DecodeTask([]byte(tc.body))
			if err != nil || !reflect.DeepEqual(got, tc.want) || !slices.Equal(links, tc.links) {
				t.Errorf("got %+v (failure %+v), links %q, %v\nwant %+v, links %q", got, got.Failure, links, err, tc.want, tc.links)
			}
		})
	}
}

// FuzzTask: any answer of an upstream becomes an error, or a status that a history may contain and a client may see.
func FuzzTask(f *testing.F) {
	providertest.AddVideoAnswers(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		status, links, err := generic.DecodeTask(body)
		if err != nil {
			if fault, ok := errors.AsType[*providers.Fault](err); !ok || fault.Accepted != providers.AcceptedUnknown ||
				fault.Kind != providers.Upstream {
				t.Fatalf("got %v", err)
			}
			return
		}
		switch status.State {
		case providers.JobQueued, providers.JobRunning, providers.JobDone, providers.JobFailed:
		default:
			t.Errorf("got state %q", status.State)
		}
		if done := status.State == providers.JobDone; done != (status.Outputs > 0) || done && len(links) > status.Outputs ||
			(status.State == providers.JobFailed) != (status.Failure != nil) {
			t.Errorf("got %+v, links %q", status, links)
		}
		if status.Progress < -1 || status.Progress > 100 || (status.Width == 0) != (status.Height == 0) {
			t.Errorf("got %+v", status)
		}
		words := status.VendorState
		if f := status.Failure; f != nil {
			if f.Code == "" || f.Message == "" {
				t.Errorf("got failure %+v", f)
			}
			words += f.Code + f.Message
		}
		if len(words) > 1200 || !utf8.ValidString(words) {
			t.Errorf("got words %q", words)
		}
	})
}

// clip begins as a WebM file does.
const clip = "\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01 webm "

// TestVideoOutputs: each of several videos is at its own link, which may be a path of the gateway, or else at the contract's
// path. Only the gateway receives the key.
func TestVideoOutputs(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("another host got the key")
		}
		w.Header().Set("Content-Type", "video/mp4")
		_, _ = io.WriteString(w, clip+"at "+r.URL.RequestURI())
	}))
	t.Cleanup(other.Close)
	for _, tc := range []struct {
		name, task, want string
		output           int
		missing          bool
	}{
		{name: "path", task: `{"status":"completed","urls":["/v1/files/a","/v1/files/b?x=1"]}`, output: 1, want: clip + "at /v1/files/b?x=1"},
		{name: "one url", task: `{"status":"completed","url":"/v1/files/a"}`, want: clip + "at /v1/files/a"},
		{name: "presigned elsewhere", task: `{"status":"completed","urls":["{other}/o/1.mp4?sig=x"]}`, want: clip + "at /o/1.mp4?sig=x"},
		{name: "no links", task: `{"status":"completed"}`, want: clip + "at /v1/videos/1/content"},
		{
			name: "the gateway's path cut by a proxy", task: `{"status":"completed","urls":["/gone/1","/gone/2"]}`, output: 1,
			want: clip + "at /v1/videos/1/content?index=1",
		},
		{name: "one too many", task: `{"status":"completed","urls":["/v1/files/a"]}`, output: 1, missing: true},
		{name: "no address", task: `{"status":"completed","urls":["file:///etc/hostname"]}`, missing: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer upstream-credential" {
					t.Errorf("%s lacks the key", r.URL.Path)
				}
				switch {
				case r.URL.Path == "/v1/video/generations/1":
					_, _ = io.WriteString(w, strings.ReplaceAll(tc.task, "{other}", other.URL))
				case strings.HasPrefix(r.URL.Path, "/v1/"):
					w.Header().Set("Content-Type", "video/webm")
					_, _ = io.WriteString(w, clip+"at "+r.URL.RequestURI())
				default:
					http.NotFound(w, r)
				}
			}))
			t.Cleanup(server.Close)
			to := target(server.URL + "/v1")
			to.Channel.AllowPrivateResults = true // the other host is local
			video, err := newVideos(t).Open(t.Context(), to, providers.Ticket{Job: "1"}, tc.output)
			if tc.missing {
				if _, ok := errors.AsType[*providers.Fault](err); !ok {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer video.Body.Close()
			if got, err := io.ReadAll(video.Body); string(got) != tc.want || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

// TestCancelEndless: Cancel succeeds and reads a bounded part of the body if the upstream's answer never ends.
func TestCancelEndless(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(gone)
		blank := bytes.Repeat([]byte(" "), 1<<20)
		for {
			if _, err := w.Write(blank); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	if err := newVideos(t).Cancel(t.Context(), target(server.URL+"/v1"), providers.Ticket{Job: "1"}); err != nil {
		t.Errorf("got %v", err)
	}
	select {
	case <-gone:
	case <-t.Context().Done():
		t.Error("the upstream is still read from")
	}
}
