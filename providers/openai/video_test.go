package openai_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"modelrelay/providers"
	"modelrelay/providers/openai"
	"modelrelay/providers/providertest"
)

func TestVideo(t *testing.T) {
	t.Parallel()
	providertest.TestVideo(t, providertest.VideoSubject{
		New:     func(client *http.Client) providers.VideoAdapter { return openai.NewVideos(client) },
		Channel: providers.Channel{Vendor: "openai"},
		Answers: os.DirFS("testdata/video"),
		Step:    step,
		Authorized: func(req *http.Request, key providers.Secret) bool {
			return req.Header.Get("Authorization") == "Bearer "+key.Reveal()
		},
		Job:            "video_68d7512d07848190b3e45da0ecbebcde004da08e1e0678d5",
		Failure:        providers.VideoFailure{Code: "moderation_blocked", Message: "The video was blocked by our moderation system."},
		IdempotencyKey: func(req *http.Request) string { return req.Header.Get("Idempotency-Key") },
		Upload:         upload,
	})
}

func step(req *http.Request) providertest.VideoStep {
	const job = "/videos/video_68d7512d07848190b3e45da0ecbebcde004da08e1e0678d5"
	switch req.Method + " " + req.URL.EscapedPath() {
	case "POST /videos":
		return providertest.VideoSubmit
	case "GET " + job:
		return providertest.VideoPoll
	case "GET " + job + "/content":
		return providertest.VideoContent
	case "POST " + job + "/remix":
		return providertest.VideoRemix
	}
	return ""
}

func upload(req *http.Request) (providertest.Upload, error) {
	if err := req.ParseMultipartForm(1 << 20); err != nil {
		return providertest.Upload{}, err
	}
	file, header, err := req.FormFile("input_reference")
	if err != nil {
		return providertest.Upload{}, err
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	return providertest.Upload{Name: header.Filename, ContentType: header.Header.Get("Content-Type"), Data: data}, err
}

// TestVideoStrays: answers of servers that copy the API and stray from it, as their issues and sources tell.
func TestVideoStrays(t *testing.T) {
	t.Parallel()
	type status = providers.VideoStatus
	failed := func(word, code, message string) status {
		return status{State: providers.JobFailed, Progress: -1, VendorState: word, Failure: &providers.VideoFailure{Code: code, Message: message}}
	}
	done := func(word string) status {
		return status{State: providers.JobDone, Progress: -1, VendorState: word, Outputs: 1}
	}
	running := func(word string, progress int) status {
		return status{State: providers.JobRunning, Progress: progress, VendorState: word}
	}
	measured := func(seconds string, width, height int) status {
		s := done("done")
		s.Seconds, s.Width, s.Height = seconds, width, height
		return s
	}
	timed := done("completed")
	timed.Took = 3 * time.Minute
	for _, tc := range []struct {
		name, body string
		want       status
		link       string
	}{
		{name: "how long it took", body: `{"status":"completed","created_at":1758941485,"completed_at":1758941665}`, want: timed},
		{name: "how long it took, in texts", body: `{"status":"completed","created_at":"1758941485","completed_at":"1758941665"}`, want: timed},
		{
			name: "times of another type", body: `{"status":"completed","created_at":"2025-09-27T02:51:25Z","completed_at":true}`,
			want: done("completed"),
		},
		{
			name: "a time before the end", body: `{"status":"in_progress","created_at":1758941485,"completed_at":1758941665}`,
			want: running("in_progress", -1),
		},
		{name: "done", body: `{"id":"1","status":"done"}`, want: done("done")},
		{name: "succeeded", body: `{"status":"succeeded"}`, want: done("succeeded")},
		{name: "upper case", body: `{"status":"SUCCESS"}`, want: done("SUCCESS")},
		{name: "pending", body: `{"status":"pending","progress":0}`, want: status{State: providers.JobQueued, VendorState: "pending"}},
		{name: "processing", body: `{"status":"processing","progress":12.6}`, want: running("processing", 13)},
		{name: "no status", body: `{"id":"1"}`, want: running("", -1)},
		{name: "status of another type", body: `{"status":{"code":3}}`, want: running("", -1)},
		{name: "long status", body: `{"status":"` + strings.Repeat("é", 80) + `"}`, want: running(strings.Repeat("é", 50)+"…", -1)},
		{name: "progress with a sign", body: `{"status":"in_progress","progress":"45%"}`, want: running("in_progress", 45)},
		{name: "progress beyond its end", body: `{"status":"in_progress","progress":1e9}`, want: running("in_progress", 100)},
		{name: "progress below its start", body: `{"status":"in_progress","progress":-3}`, want: running("in_progress", 0)},
		{name: "progress that is no number", body: `{"status":"in_progress","progress":"NaN"}`, want: running("in_progress", -1)},
		{name: "numeric seconds", body: `{"status":"done","seconds":8,"size":"720x1280"}`, want: measured("8", 720, 1280)},
		{name: "fractional seconds", body: `{"status":"done","seconds":"5.08"}`, want: measured("5.08", 0, 0)},
		{name: "words for seconds and size", body: `{"status":"done","seconds":"Infinity","size":"large"}`, want: done("done")},
		{name: "half a size", body: `{"status":"done","size":"1280x"}`, want: done("done")},
		{
			name: "nulls", body: `{"status":"done","seconds":null,"size":null,"error":null,"video":null,"metadata":null,"id":null}`,
			want: done("done"),
		},
		{name: "bare error", body: `{"status":"failed","error":"out of credits"}`, want: failed("failed", "upstream_failed", "out of credits")},
		{
			name: "the client's link in the error", body: `{"status":"failed","error":"cannot fetch https://h/a.png?sig=hush"}`,
			want: failed("failed", "upstream_failed", "cannot fetch https://h/a.png?…"),
		},
		{name: "numeric code", body: `{"status":"failed","error":{"code":1301,"message":"unsafe"}}`, want: failed("failed", "1301", "unsafe")},
		{
			name: "no error", body: `{"status":"expired","error":null}`,
			want: failed("expired", "upstream_expired", `The upstream's job ended as "expired".`),
		},
		{
			name: "empty error", body: `{"status":"canceled","error":{}}`,
			want: failed("canceled", "upstream_canceled", `The upstream's job ended as "canceled".`),
		},
		{
			name: "long error", body: `{"status":"failed","error":"x` + strings.Repeat("é", 300) + `"}`,
			want: failed("failed", "upstream_failed", "x"+strings.Repeat("é", 199)+"…"),
		},
		{name: "video.url", body: `{"video":{"url":"https://a/1"}}`, want: running("", -1), link: "https://a/1"},
		{name: "video as a link", body: `{"video":"https://a/1"}`, want: running("", -1), link: "https://a/1"},
		{name: "url", body: `{"url":"/v1/videos/1/content","video_url":"https://a/2"}`, want: running("", -1), link: "/v1/videos/1/content"},
		{name: "video_url", body: `{"video_url":"https://a/2"}`, want: running("", -1), link: "https://a/2"},
		{name: "metadata.url", body: `{"metadata":{"url":"https://a/3"}}`, want: running("", -1), link: "https://a/3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, link, err := openai.DecodeJob([]byte(tc.body))
			if err != nil || !reflect.DeepEqual(got, tc.want) || link != tc.link {
				t.Errorf("got %+v (failure %+v), link %q, %v, want %+v, link %q", got, got.Failure, link, err, tc.want, tc.link)
			}
		})
	}
}

// FuzzJob: any answer of an upstream becomes an error, or a status that a history may contain and a client may see.
func FuzzJob(f *testing.F) {
	providertest.AddVideoAnswers(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		status, _, err := openai.DecodeJob(body)
		if object := json.Valid(body) && bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")); object != (err == nil) {
			t.Fatalf("got %v", err)
		}
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
		if (status.State == providers.JobDone) != (status.Outputs == 1) || (status.State == providers.JobFailed) != (status.Failure != nil) {
			t.Errorf("got %+v", status)
		}
		if status.Progress < -1 || status.Progress > 100 || status.Width < 0 || status.Height < 0 || (status.Width == 0) != (status.Height == 0) {
			t.Errorf("got %+v", status)
		}
		if _, err := strconv.ParseFloat(status.Seconds, 64); status.Seconds != "" && err != nil {
			t.Errorf("got seconds %q", status.Seconds)
		}
		words := status.VendorState
		if f := status.Failure; f != nil {
			if f.Code == "" || f.Message == "" {
				t.Errorf("got failure %+v", f)
			}
			words += f.Code + f.Message
		}
		if len(words) > 1000 || !utf8.ValidString(words) {
			t.Errorf("got words %q", words)
		}
	})
}

// clip begins as a WebM file does.
const clip = "\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01 webm"

// TestVideoLinks: where the result is not at /content but at a link, the key goes to the channel's own host alone.
func TestVideoLinks(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, link string
		fails      bool
	}{
		{name: "same host", link: "{base}/files/1.mp4"},
		{name: "path", link: "/files/1.mp4"},
		{name: "no link", link: "", fails: true},
		{name: "file", link: "file:///etc/hostname", fails: true},
		{name: "nonsense", link: "http://[::1", fails: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/videos/video_1":
					doc, _ := json.Marshal(map[string]string{"status": "done", "url": strings.ReplaceAll(tc.link, "{base}", "http://"+r.Host)})
					_, _ = w.Write(doc)
				case "/files/1.mp4":
					if r.Header.Get("Authorization") != "Bearer upstream-credential" {
						t.Error("the channel's own host did not get the key")
					}
					w.Header().Set("Content-Type", "video/webm")
					_, _ = io.WriteString(w, clip)
				default:
					http.NotFound(w, r)
				}
			}))
			t.Cleanup(server.Close)
			video, err := openai.NewVideos(newClient(t)).Open(t.Context(), target(server.URL), providers.Ticket{Job: "video_1"}, 0)
			if tc.fails {
				if _, ok := errors.AsType[*providers.Fault](err); !ok {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer video.Body.Close()
			if got, err := io.ReadAll(video.Body); string(got) != clip || err != nil || video.ContentType != "video/webm" ||
				video.Length != int64(len(clip)) {
				t.Errorf("got %q of type %q, length %d, %v", got, video.ContentType, video.Length, err)
			}
		})
	}
}
