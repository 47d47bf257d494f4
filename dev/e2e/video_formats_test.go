package e2e_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/openai/openai-go/v3"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

// reading is what every format says of a task.
type reading struct {
	state string // in the generic format's words
	url   string // of the video once completed; "" where the format has none
}

// videoFormat is a client of one video format.
type videoFormat struct {
	create func(model, prompt string, seconds int, image []byte) string
	read   func(id string) reading
}

// videoFormats are the three video formats of a gateway, each through a client of its own.
func videoFormats(t *testing.T, g *stack.Gateway) map[string]videoFormat {
	t.Helper()
	sdk := g.SDK()
	volc := volcengine{t: t, endpoint: g.URL() + "/vendorC/", accessKey: "AKLTclient", secretKey: "its own secret", token: stack.Token}
	return map[string]videoFormat{
		"sora": {
			func(model, prompt string, seconds int, image []byte) string {
				video, err := sdk.Videos.New(t.Context(), openai.VideoNewParams{
					Prompt: prompt, Model: openai.VideoModel(model), Seconds: openai.VideoSeconds(strconv.Itoa(seconds)), Size: "1280x720",
					InputReference: openai.VideoNewParamsInputReferenceUnion{OfFile: openai.File(bytes.NewReader(image), "a.png", "image/png")},
				})
				if err != nil {
					t.Fatal(err)
				}
				return video.ID
			},
			func(id string) reading {
				video, err := sdk.Videos.Get(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				return reading{state: string(video.Status)}
			},
		},
		"generic": {
			func(model, prompt string, seconds int, image []byte) string {
				var made struct {
					ID     string `json:"id"`
					TaskID string `json:"task_id"`
				}
				g.CallJSON(t, stack.Request{Method: http.MethodPost, Path: "/v1/video/generations", Body: map[string]any{
					"model": model, "prompt": prompt, "image": base64.StdEncoding.EncodeToString(image), "duration": seconds, "width": 1280, "height": 720,
				}}, &made)
				if made.ID == "" || made.ID != made.TaskID {
					t.Fatalf("created = %+v", made)
				}
				return made.TaskID
			},
			func(id string) reading {
				var task struct {
					Status string   `json:"status"`
					URL    *string  `json:"url"`
					URLs   []string `json:"urls"`
				}
				g.CallJSON(t, stack.Request{Path: "/v1/video/generations/" + id}, &task)
				got := reading{state: task.Status}
				if task.URL != nil {
					got.url = g.URL() + *task.URL
				}
				return got
			},
		},
		"vendor C": {
			func(model, prompt string, _ int, image []byte) string {
				return volc.submit(map[string]any{
					"req_key": model, "prompt": prompt, "binary_data_base64": []string{base64.StdEncoding.EncodeToString(image)},
				})
			},
			func(id string) reading {
				status, answer := volc.result("any", id)
				if status != http.StatusOK || answer.Code != 10000 || answer.RequestID == "" {
					t.Fatalf("result: %d %+v", status, answer)
				}
				words := map[string]string{"in_queue": "queued", "generating": "in_progress", "done": "completed"}
				return reading{words[answer.Data.Status], answer.Data.VideoURL}
			},
		},
	}
}

// TestVideoFormats: a task that is made in any of the three formats, over any vendor's adapter, is read in all of them, and
// its bytes are the upstream's.
func TestVideoFormats(t *testing.T) {
	t.Parallel()
	s := stack.Shared(t)
	g := s.StartGateway(stack.GatewayOptions{Channels: s.EveryVendor()})
	formats := videoFormats(t, g)
	image := append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte("an image of a client's "), 100)...)
	type made struct{ format, model, prompt, id string }
	var tasks []made
	seconds := map[string]int{"sora-2-fast": 4, "jimeng-fast": 5, "generic-video-fast": 4} // what each vendor makes
	for _, model := range slices.Sorted(maps.Keys(seconds)) {
		for _, name := range slices.Sorted(maps.Keys(formats)) {
			prompt := fmt.Sprintf("%s over %s", name, model)
			tasks = append(tasks, made{name, model, prompt, formats[name].create(model, prompt, seconds[model], image)})
		}
	}
	for _, task := range tasks {
		for name, format := range formats {
			var got reading
			testwait.Eventually(t, task.prompt+" completed in "+name, stack.TaskTimeout, func() bool {
				got = format.read(task.id)
				if got.state == "failed" || got.state == "" {
					t.Fatalf("%s: %+v in %s: %s", task.prompt, got, name, g.Call(t, stack.Request{Path: "/v1/videos/" + task.id}).Body)
				}
				return got.state == "completed"
			})
			if name == "sora" {
				got.url = "/v1/videos/" + task.id + "/content"
			}
			content := g.Call(t, stack.Request{Path: got.url})
			job := s.Control.Job(task.prompt)
			if job == nil || content.Status != http.StatusOK || hexSum(content.Body) != job.SHA256 {
				t.Errorf("%s: %d with %d bytes by %s, which are not the upstream's", task.prompt, content.Status, len(content.Body), name)
				continue
			}
			want := hexSum(image)
			if task.model == "generic-video-fast" { // this fake keeps the digest of the text that came
				want = hexSum([]byte("data:image/png;base64," + base64.StdEncoding.EncodeToString(image)))
			}
			if job.InputSHA256 != want {
				t.Errorf("%s: the upstream got another image", task.prompt)
			}
		}
	}
	t.Run("two videos of one request", func(t *testing.T) { wantSeveral(t, g) })
	g.WantNoSecrets(t)
}

// wantSeveral makes two videos of one request and finds both in the archive.
func wantSeveral(t *testing.T, g *stack.Gateway) {
	t.Helper()
	pair := func(model string) stack.Request {
		return stack.Request{
			Method: http.MethodPost, Path: "/v1/video/generations",
			Body: map[string]any{"model": model, "prompt": "a pair", "n": 2},
		}
	}
	var task struct {
		ID     string   `json:"id"`
		Status string   `json:"status"`
		URLs   []string `json:"urls"`
	}
	g.CallJSON(t, pair("generic-video-fast"), &task)
	testwait.Eventually(t, "two videos completed", stack.TaskTimeout, func() bool {
		g.CallJSON(t, stack.Request{Path: "/v1/video/generations/" + task.ID}, &task)
		return task.Status == "completed"
	})
	content := "/v1/videos/" + task.ID + "/content"
	if len(task.URLs) != 2 || task.URLs[0] != content || task.URLs[1] != content+"?index=1" {
		t.Fatalf("urls = %v", task.URLs)
	}
	for _, path := range task.URLs {
		if got := g.Call(t, stack.Request{Path: path}); got.Status != http.StatusOK ||
			!bytes.Contains(got.Body[:min(len(got.Body), 12)], []byte("ftyp")) {
			t.Errorf("%s: %d with %d bytes, want an MP4", path, got.Status, len(got.Body))
		}
	}
	if got := g.Call(t, stack.Request{Path: content + "?index=2"}); got.Status != http.StatusNotFound {
		t.Errorf("a third video: %d, want 404", got.Status)
	}
	if got := g.Call(t, pair("sora-2-fast")); got.Status != http.StatusBadRequest || !bytes.Contains(got.Body, []byte(`"n"`)) {
		t.Errorf("two videos of a vendor that makes one: %d %s, want 400 on n", got.Status, got.Body)
	}
}

// TestVolcengine is the way of a client of vendor C's: it submits, asks until done and fetches, its signature ignored.
func TestVolcengine(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	// That the signature is the vendor's own is checked by the upstream, which verifies it as the vendor's SDK makes it.
	direct := volcengine{
		t: t, endpoint: "http://" + s.UpstreamAt + "/vendorc/", accessKey: "ak-upstream-client",
		secretKey: "sk-upstream-client",
	}
	if status, answer := direct.result("jimeng_t2v_v30_fast", "7000000000000000001"); status != http.StatusOK ||
		answer.Data.Status != "not_found" {
		t.Fatalf("the vendor does not take the client's signature: %d %+v", status, answer)
	}
	g := s.StartGateway(stack.GatewayOptions{Channels: s.EveryVendor(), Video: "poll_min: 200ms, poll_max: 1s, presigned_urls: true"})
	client := volcengine{t: t, endpoint: g.URL() + "/jimeng/", accessKey: "AKLTclient", secretKey: "its own secret", token: stack.Token}

	id := client.submit(map[string]any{"req_key": "jimeng-fast", "prompt": "a lantern", "frames": 121, "aspect_ratio": "16:9"})
	var link string
	testwait.Eventually(t, "done", stack.TaskTimeout, func() bool {
		status, answer := client.result("jimeng-fast", id)
		if status != http.StatusOK || answer.Code != 10000 || answer.Status != 10000 {
			t.Fatalf("result: %d %+v", status, answer)
		}
		link = answer.Data.VideoURL
		return answer.Data.Status == "done"
	})
	if content := fetch(t, link); hexSum(content) != s.Control.Job("a lantern").SHA256 {
		t.Errorf("%d bytes at the link, which are not the upstream's", len(content))
	}

	doomed := client.submit(map[string]any{"req_key": "jimeng-fast-fail", "prompt": "no such luck"})
	var refused volcAnswer
	testwait.Eventually(t, "failed", stack.TaskTimeout, func() bool {
		var status int
		status, refused = client.result("jimeng-fast-fail", doomed)
		return status == http.StatusBadRequest
	})
	if refused.Code <= 50000 || refused.Code >= 60000 || refused.Message == "" || refused.RequestID == "" {
		t.Errorf("failed = %+v", refused)
	}
	if status, answer := client.result("jimeng-fast", "video_00000000000000000000000000"); status != http.StatusOK ||
		answer.Data.Status != "not_found" {
		t.Errorf("an unknown task: %d %+v", status, answer)
	}
	stranger := client
	stranger.token = stack.Token + "-other"
	if status, answer := stranger.result("jimeng-fast", id); status != http.StatusOK || answer.Data.Status != "not_found" {
		t.Errorf("another token's task: %d %+v", status, answer)
	}
	stranger.token = ""
	if status, answer := stranger.result("jimeng-fast", id); status != http.StatusUnauthorized || answer.Code != 50401 {
		t.Errorf("a signature alone: %d %+v", status, answer)
	}
}

// fetch reads a link without any token.
func fetch(t *testing.T, link string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("link: %d %v", resp.StatusCode, err)
	}
	return content
}
