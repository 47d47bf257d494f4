package e2e_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"

	"modelrelay/dev/e2e/stack"
	"modelrelay/providers"
	"modelrelay/providers/vendors"
	"modelrelay/storage/testwait"
	"modelrelay/workflows"
)

// videoClient makes and reads tasks in one of the clients' formats.
type videoClient struct {
	format string
	create func(v stack.VideoVendor, prompt string, image []byte) (id string)
	// read returns the state, and where a completed video lies.
	read func(model, id string) (state, url string)
}

// videoClients are one for each of the four formats.
func videoClients(t *testing.T, g *stack.Gateway) []videoClient {
	t.Helper()
	three := videoFormats(t, g)
	sdk := g.SDK()
	volc := volcengine{t: t, endpoint: g.URL() + "/vendorC/", accessKey: "AKLTclient", secretKey: "its own secret", token: stack.Token}
	post := func(path string, body map[string]any, into any) {
		g.CallJSON(t, stack.Request{Method: http.MethodPost, Path: path, Body: body}, into)
	}
	read := func(format string) func(string, string) (string, string) {
		return func(_, id string) (string, string) {
			got := three[format].read(id)
			if format == "sora" {
				got.url = "/v1/videos/" + id + "/content"
			}
			return got.state, got.url
		}
	}
	return []videoClient{
		{"sora", func(v stack.VideoVendor, prompt string, image []byte) string {
			p := openai.VideoNewParams{Prompt: prompt, Model: openai.VideoModel(v.Name), Seconds: openai.VideoSeconds(strconv.Itoa(v.Seconds))}
			if image == nil {
				p.Size = openai.VideoSize(v.Size)
			} else {
				p.InputReference.OfFile = openai.File(bytes.NewReader(image), "a.png", "image/png")
			}
			video, err := sdk.Videos.New(t.Context(), p)
			if err != nil {
				t.Fatalf("%s: %v", prompt, err)
			}
			return video.ID
		}, read("sora")},
		{"generic", func(v stack.VideoVendor, prompt string, image []byte) string {
			body := map[string]any{"model": v.Name, "prompt": prompt, "duration": v.Seconds}
			if width, height, ok := strings.Cut(v.Size, "x"); ok && image == nil {
				body["width"], _ = strconv.Atoi(width)
				body["height"], _ = strconv.Atoi(height)
			}
			if image != nil {
				body["image"] = base64.StdEncoding.EncodeToString(image)
			}
			var made struct{ ID string }
			post("/v1/video/generations", body, &made)
			return made.ID
		}, read("generic")},
		{"vendor C", func(v stack.VideoVendor, prompt string, image []byte) string {
			body := map[string]any{"req_key": v.Name, "prompt": prompt}
			if image != nil {
				body["binary_data_base64"] = []string{base64.StdEncoding.EncodeToString(image)}
			}
			return volc.submit(body)
		}, read("vendor C")},
		{"format B", func(v stack.VideoVendor, prompt string, image []byte) string {
			instance := map[string]any{"prompt": prompt}
			if image != nil {
				instance["image"] = map[string]string{"bytesBase64Encoded": base64.StdEncoding.EncodeToString(image), "mimeType": "image/png"}
			}
			var made struct{ Name string }
			post("/v1beta/models/"+v.Name+":predictLongRunning",
				map[string]any{"instances": []any{instance}, "parameters": map[string]any{"durationSeconds": v.Seconds}}, &made)
			return made.Name[strings.LastIndexByte(made.Name, '/')+1:]
		}, func(model, id string) (string, string) {
			var operation struct {
				Done  bool
				Error *struct{ Message string }
				// Metadata is the gateway's own.
				Metadata struct{ State string }
				Response struct {
					GenerateVideoResponse struct {
						GeneratedSamples []struct{ Video struct{ URI string } }
					}
				}
			}
			g.CallJSON(t, stack.Request{Path: "/v1beta/models/" + model + "/operations/" + id}, &operation)
			if operation.Error != nil {
				return "failed", ""
			}
			samples := operation.Response.GenerateVideoResponse.GeneratedSamples
			if !operation.Done || len(samples) == 0 {
				return operation.Metadata.State, ""
			}
			return "completed", samples[0].Video.URI
		}},
	}
}

// jobSeconds is how long a job of TestVideoVendors takes, and mostPolls and mostEvents are what a task of such a job may need.
const (
	jobSeconds = 2
	mostPolls  = 8
	mostEvents = 30
)

// TestVideoVendors makes a video at each vendor in each of the formats, in every other one from an image where the vendor takes one, and
// reads it in the next format. Each is paid once, polled seldom, and arrives as the vendor made it. The gate's set has the first vendor.
func TestVideoVendors(t *testing.T) {
	t.Parallel()
	length := fmt.Sprintf("%ds", jobSeconds)
	s := stack.Shared(t, "--video-min", length, "--video-max", length)
	g := s.StartGateway(stack.GatewayOptions{Channels: s.VideoChannels()})
	clients := videoClients(t, g)
	image := append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte("an image of a client's "), 100)...)
	type task struct {
		vendor       stack.VideoVendor
		reader       videoClient
		id, prompt   string
		image, named []byte
	}
	vendors := s.VideoVendors()
	if !stack.IsFull() {
		vendors = vendors[:1]
	}
	var made []task
	for n, vendor := range vendors {
		for i, client := range clients {
			one := task{vendor: vendor, reader: clients[(i+1)%len(clients)], prompt: fmt.Sprintf("at %s in %s", vendor.Name, client.format)}
			if !vendor.TextOnly && (n+i)%2 == 0 {
				one.image, one.named = image, image
				if vendor.Named {
					one.named = []byte("data:image/png;base64," + base64.StdEncoding.EncodeToString(image))
				}
			}
			one.id = client.create(vendor, one.prompt, one.image)
			made = append(made, one)
		}
	}
	for _, one := range made {
		if ended := g.AwaitEnd(one.id, stack.TaskTimeout); ended.Status != openai.VideoStatusCompleted {
			t.Errorf("%s: ended as %s: %s %s", one.prompt, ended.Status, ended.Error.Code, ended.Error.Message)
			continue
		}
		state, url := one.reader.read(one.vendor.Name, one.id)
		if state != "completed" {
			t.Errorf("%s: %q in %s", one.prompt, state, one.reader.format)
			continue
		}
		content, job := g.Call(t, stack.Request{Path: url}), s.Control.Job(one.prompt)
		if job == nil || content.Status != http.StatusOK || hexSum(content.Body) != job.SHA256 {
			t.Errorf("%s: %d with %d bytes by %s, which are not the vendor's", one.prompt, content.Status, len(content.Body), one.reader.format)
			continue
		}
		if one.named != nil && job.InputSHA256 != hexSum(one.named) {
			t.Errorf("%s: the vendor got another image", one.prompt)
		}
		if job.Polls > mostPolls {
			t.Errorf("%s: polled %d times, want %d at most", one.prompt, job.Polls, mostPolls)
		}
	}
	temporal := s.TemporalClient()
	for _, one := range made {
		if n := len(stack.History(t.Context(), t, temporal, one.id).GetEvents()); n > mostEvents {
			t.Errorf("%s: %d events in its history, want %d at most", one.prompt, n, mostEvents)
		}
	}
	s.WantSubmittedOnce(len(made))
	g.WantNoSecrets(t)
}

// TestKillAtVideoVendors kills the gateway and its worker while, at every vendor, one task's submit has been taken and not been answered,
// one is polled and one's result is on its way. Nothing is paid twice and nothing is lost, but a submit whose vendor has no look-up: its
// task says so, a minute and a half after the submit began, when no worker can still be at it.
func TestKillAtVideoVendors(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t, "--video-min", "100ms", "--video-max", "100ms")
	channels := s.VideoChannels()
	front := s.StartGateway(stack.GatewayOptions{Args: []string{"serve", "--worker=false"}, Channels: channels})
	worker := s.StartGateway(stack.GatewayOptions{Args: []string{"worker"}, Channels: channels})
	vendors := s.VideoVendors()

	const submitting, polling, archiving = "while it is submitted", "while it is polled", "while it is archived"
	s.Control.AddRule(map[string]any{"operation": "video.create", "contains": submitting, "action": "hang", "accept": true})
	s.Control.AddRule(map[string]any{"operation": "video.create", "contains": polling, "action": "manual"})
	s.Control.AddRule(map[string]any{"operation": "video.content", "contains": archiving, "action": "stall", "bytes": 1000})
	ids := make(map[string]string) // by prompt
	for _, v := range vendors {
		if v.Content != "" { // the result is in the answer about the job, which the copy asks for after the poll
			s.Control.AddRule(map[string]any{
				"vendor": v.Name, "operation": v.Content, "contains": archiving, "action": "stall", "bytes": 1000,
				"after": 1,
			})
		}
		for _, phase := range []string{submitting, polling, archiving} {
			prompt := phase + " at " + v.Name
			ids[prompt] = front.Create(t.Context(), v.Name, prompt).ID
		}
	}
	testwait.Eventually(t, "a task of each vendor is in each phase", stack.TaskTimeout, func() bool {
		there := 0
		for _, j := range s.Control.Jobs() {
			downloads := 0
			if slices.ContainsFunc(vendors, func(v stack.VideoVendor) bool {
				return v.Content != "" &&
					strings.HasSuffix(j.Prompt, " at "+v.Name)
			}) {
				downloads = 1 // the poll's
			}
			switch {
			case strings.HasPrefix(j.Prompt, submitting), strings.HasPrefix(j.Prompt, polling) && j.Polls > 0,
				strings.HasPrefix(j.Prompt, archiving) && j.Downloads > downloads:
				there++
			}
		}
		return there == len(ids)
	})
	worker.Kill()
	front.Kill()
	s.Control.Clear()
	for _, j := range s.Control.Jobs() {
		if strings.HasPrefix(j.Prompt, polling) {
			s.Control.Drive(j.ID, "completed", 100)
		}
	}
	worker.Start()
	front.Start()

	for _, v := range vendors {
		for _, phase := range []string{submitting, polling, archiving} {
			prompt := phase + " at " + v.Name
			if phase != submitting || finds(v) {
				front.AwaitCompleted(ids[prompt], stack.CrashTimeout)
			} else if ended := front.AwaitEnd(ids[prompt], stack.CrashTimeout); ended.Error.Code != workflows.CodeUpstreamUnknown {
				t.Errorf("%s: ended as %s %s, want %s", prompt, ended.Status, ended.Error.Code, workflows.CodeUpstreamUnknown)
			}
		}
	}
	wantPaidOnce(t, s, vendors, ids)
	front.WantNoSecrets(t)
}

// finds reports whether a job at the vendor is found whose create's answer was lost.
func finds(v stack.VideoVendor) bool {
	_, ok := vendors.New(http.DefaultClient)[v.Vendor].Video.(providers.Finder)
	return ok
}

// wantPaidOnce finds one job for each prompt. A vendor that knows creates by a key of the gateway's may have been asked again.
func wantPaidOnce(t *testing.T, s *stack.Stack, vendors []stack.VideoVendor, ids map[string]string) {
	t.Helper()
	jobs := make(map[string]int)
	for _, j := range s.Control.Jobs() {
		jobs[j.Prompt]++
		again := slices.ContainsFunc(vendors, func(v stack.VideoVendor) bool { return v.Repeats && strings.HasSuffix(j.Prompt, " at "+v.Name) })
		if j.Submissions != 1 && !again {
			t.Errorf("%s: submitted %d times", j.Prompt, j.Submissions)
		}
	}
	for prompt := range ids {
		if jobs[prompt] != 1 {
			t.Errorf("%s: %d jobs, want 1", prompt, jobs[prompt])
		}
	}
	if len(jobs) != len(ids) {
		t.Errorf("%d jobs for %d tasks", len(jobs), len(ids))
	}
}
