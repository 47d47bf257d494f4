package vidu_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/providertest"
	"modelrelay/providers/upstream"
	"modelrelay/providers/vidu"
)

const job = "843201977541234"

func newVideos(client *http.Client) providers.VideoAdapter { return vidu.NewVideos(client) }

func TestVideo(t *testing.T) {
	t.Parallel()
	providertest.TestVideo(t, providertest.VideoSubject{
		New:     newVideos,
		Channel: providers.Channel{Vendor: "vidu"},
		Answers: os.DirFS("testdata/video"),
		Step: func(req *http.Request) providertest.VideoStep {
			switch req.Method + " " + req.URL.EscapedPath() {
			case "POST /ent/v2/text2video", "POST /ent/v2/img2video":
				return providertest.VideoSubmit
			case "GET /ent/v2/tasks/" + job + "/creations":
				return providertest.VideoPoll
			case "POST /ent/v2/tasks/" + job + "/cancel":
				return providertest.VideoCancel
			case "GET /ent/v2/tasks":
				return providertest.VideoFind
			}
			return ""
		},
		Authorized: func(req *http.Request, key providers.Secret) bool {
			if strings.HasPrefix(req.URL.Path, "/ent/v2/") {
				return req.Header.Get("Authorization") == "Token "+key.Reveal()
			}
			return req.Header.Get("Authorization") == "" // links need no key
		},
		Job:     job,
		Failure: providers.VideoFailure{Code: providers.FailedContent, Message: "CreationPolicyViolation"},
		IdempotencyKey: func(req *http.Request) string {
			var body struct {
				Payload string `json:"payload"`
			}
			raw, _ := io.ReadAll(req.Body)
			req.Body = io.NopCloser(strings.NewReader(string(raw)))
			_ = json.Unmarshal(raw, &body)
			return body.Payload
		},
		Upload: upload,
		VideoTraits: providertest.VideoTraits{
			BareUploads: true,
			LooksUp:     true,
		},
	})
}

func upload(req *http.Request) (providertest.Upload, error) {
	var body struct {
		Images []string `json:"images"`
	}
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
		return providertest.Upload{}, err
	}
	if len(body.Images) != 1 {
		return providertest.Upload{}, errors.New("not one image")
	}
	encoded, found := strings.CutPrefix(body.Images[0], "data:image/png;base64,")
	if !found {
		return providertest.Upload{}, errors.New("no data URI of a PNG")
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	return providertest.Upload{Data: data}, err
}

func link(role providers.InputRole) providers.Media {
	return providers.Media{Role: role, URL: "https://h/" + string(role)}
}

func TestVideoCreate(t *testing.T) {
	t.Parallel()
	off, seed := false, int64(7)
	first, last, reference := link(providers.FirstFrame), link(providers.LastFrame), link(providers.Reference)
	for _, tc := range []struct {
		name, model string
		req         providers.VideoRequest
		path, want  string
	}{
		{
			"a prompt", "viduq3-turbo",
			providers.VideoRequest{
				Prompt: "p", Width: 720, Height: 1280, Seconds: "16", Seed: &seed, GenerateAudio: &off, IdempotencyKey: "video_1-1",
				Extra: json.RawMessage(`{"movement_amplitude":"small","prompt":"x"}`),
			},
			"text2video",
			`{"aspect_ratio":"9:16","audio":false,"duration":16,"model":"viduq3-turbo","movement_amplitude":"small","payload":"video_1-1","prompt":"p","resolution":"720p","seed":7}`,
		},
		{
			"an image", "viduq2-pro",
			providers.VideoRequest{Width: 1920, Height: 1080, Inputs: []providers.Media{first}},
			"img2video", `{"images":["https://h/"],"model":"viduq2-pro","resolution":"1080p"}`,
		},
		{
			"two frames, the last named first", "viduq3-pro",
			providers.VideoRequest{Prompt: "p", GenerateAudio: &off, Inputs: []providers.Media{last, first}},
			"start-end2video", `{"audio":false,"images":["https://h/","https://h/last_frame"],"model":"viduq3-pro","prompt":"p"}`,
		},
		{
			"references", "viduq3",
			providers.VideoRequest{Prompt: "p", AspectRatio: "1:1", Seconds: "3", Inputs: []providers.Media{reference, reference}},
			"reference2video", `{"aspect_ratio":"1:1","duration":3,"images":["https://h/reference","https://h/reference"],"model":"viduq3","prompt":"p"}`,
		},
		{
			"an extension", "viduq2-turbo",
			providers.VideoRequest{Prompt: "p", Seconds: "7", Inputs: []providers.Media{link(providers.ExtendVideo)}},
			"extend", `{"duration":7,"model":"viduq2-turbo","prompt":"p","video_url":"https://h/extend"}`,
		},
		{
			"a model that is not known", "viduq9",
			providers.VideoRequest{Seconds: "60", Width: 1440, Height: 1440, Inputs: []providers.Media{first}},
			"img2video", `{"duration":60,"images":["https://h/"],"model":"viduq9","resolution":"1440p"}`,
		},
		{
			"silence of a model without sound", "viduq2",
			providers.VideoRequest{Prompt: "p", GenerateAudio: &off},
			"text2video",
			`{"model":"viduq2","prompt":"p"}`,
		},
	} {
		seen, err := providertest.VideoExchange{New: newVideos, Model: tc.model, Answer: `{"task_id":"1"}`}.Submit(t, tc.req)
		if err != nil || len(seen) != 1 || seen[0].URI != "/ent/v2/"+tc.path || seen[0].Body != tc.want {
			t.Errorf("%s: got %v, %v, want %s %s", tc.name, seen, err, tc.path, tc.want)
		}
	}
}

func TestVideoRefusals(t *testing.T) {
	t.Parallel()
	on := true
	first, last, reference := link(providers.FirstFrame), link(providers.LastFrame), link(providers.Reference)
	with := func(inputs ...providers.Media) providers.VideoRequest {
		return providers.VideoRequest{Prompt: "p", Inputs: inputs}
	}
	many := with()
	for range 8 {
		many.Inputs = append(many.Inputs, reference)
	}
	clip := providers.Media{Role: providers.ExtendVideo, Object: "o", ContentType: "video/mp4", Size: 1}
	for _, tc := range []struct {
		model, field string
		req          providers.VideoRequest
	}{
		{"viduq3-pro", "prompt", providers.VideoRequest{}},
		{"viduq3-pro", "prompt", providers.VideoRequest{Prompt: strings.Repeat("p", 5001)}},
		{"viduq3", "prompt", providers.VideoRequest{Prompt: strings.Repeat("p", 2001), Inputs: []providers.Media{reference}}},
		{"viduq3", "prompt", providers.VideoRequest{Inputs: []providers.Media{reference}}},
		{"viduq2-turbo", "image", providers.VideoRequest{Prompt: "p"}},
		{"viduq3", "reference_images", providers.VideoRequest{Prompt: "p"}},
		{"viduq3-pro", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "17"}},
		{"viduq3-pro", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "5.5"}},
		// from one image it may
		{"viduq2-pro", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "9", Inputs: []providers.Media{first, last}}},
		{"viduq3-turbo", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "2", Inputs: []providers.Media{reference}}},
		{"viduq3-pro-fast", "resolution", providers.VideoRequest{Prompt: "p", Resolution: "540p", Inputs: []providers.Media{first}}},
		{"viduq3-pro", "width", providers.VideoRequest{Prompt: "p", Width: 640, Height: 480}},
		{"viduq1", "aspect_ratio", providers.VideoRequest{Prompt: "p", AspectRatio: "3:4"}},
		{"viduq3-pro", "aspect_ratio", providers.VideoRequest{Prompt: "p", AspectRatio: "16:9", Inputs: []providers.Media{first}}},
		{"viduq9", "aspect_ratio", providers.VideoRequest{Prompt: "p", AspectRatio: "16:9", Inputs: []providers.Media{first}}},
		{"viduq3-pro", "n", providers.VideoRequest{Prompt: "p", N: 2}},
		{"viduq3-pro", "fps", providers.VideoRequest{Prompt: "p", FPS: 24}},
		{"viduq3-pro", "negative_prompt", providers.VideoRequest{Prompt: "p", NegativePrompt: "n"}},
		{"viduq2", "generate_audio", providers.VideoRequest{Prompt: "p", GenerateAudio: &on}},
		{"viduq3-pro", "last_image", with(last)},
		{"viduq3-turbo", "reference_images", with(first, reference)},
		{"viduq3", "reference_images", many},
		{"viduq3-pro", "image", with(first, first)},
		{"viduq3-pro", "image", with(providers.Media{Object: "o", ContentType: "image/png", Size: 16 << 20})},
		{"viduq3-pro", "image", with(providers.Media{Object: "o", ContentType: "image/gif", Size: 1})},
		{"viduq2-pro", "video", with(clip)},
		{"viduq2-pro", "video", with(first, link(providers.ExtendVideo))},
		{"viduq3-pro", "payload", providers.VideoRequest{Prompt: "p", Extra: json.RawMessage(`{"payload":"mine"}`)}},
		{"viduq3-pro", "callback_url", providers.VideoRequest{Prompt: "p", Extra: json.RawMessage(`{"callback_url":"https://h"}`)}},
	} {
		providertest.VideoExchange{New: newVideos, Model: tc.model, Answer: `{"task_id":"1"}`}.Refuses(t, tc.field, tc.req)
	}
	// Images that fit one by one and not together.
	large := providers.Media{Role: providers.Reference, Object: "o", ContentType: "image/png", Size: 9 << 20}
	large.Open = func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(io.LimitReader(zeros{}, large.Size)), nil
	}
	providertest.VideoExchange{New: newVideos, Model: "viduq3", Answer: `{"task_id":"1"}`}.Refuses(t, "image", with(large, large))
}

// TestVideoReasons: the vendor's reason decides the outcome of a create.
func TestVideoReasons(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status   int
		reason   string
		kind     providers.Kind
		blame    providers.Blame
		key      providers.KeyFault
		accepted providers.Accepted
	}{
		{400, "CreditInsufficient", providers.Upstream, providers.BlameKey, providers.KeyExhausted, providers.NotAccepted},
		{400, "AuditSubmitIllegal", providers.Invalid, providers.BlameNone, 0, providers.NotAccepted},
		{400, "OperationInProcess", providers.Upstream, providers.BlameNone, 0, providers.AcceptedUnknown},
		{400, "SystemThrottling", providers.RateLimited, providers.BlameKey, 0, providers.NotAccepted},
		{403, "Forbidden", providers.Upstream, providers.BlameKey, providers.KeyRefused, providers.NotAccepted},
		{409, "Conflict", providers.Upstream, providers.BlameNone, 0, providers.AcceptedUnknown},
		{499, "Canceled", providers.Upstream, providers.BlameNone, 0, providers.AcceptedUnknown},
		{500, "InternalServiceFailure", providers.Upstream, providers.BlameChannel, 0, providers.AcceptedUnknown},
		{500, "CreditInsufficient", providers.Upstream, providers.BlameChannel, 0, providers.AcceptedUnknown},
	} {
		body := fmt.Sprintf(`{"code":%d,"reason":%q,"message":"m","metadata":{}}`, tc.status, tc.reason)
		_, err := providertest.VideoExchange{New: newVideos, Model: "viduq2", Status: tc.status, Answer: body}.Submit(t,
			providers.VideoRequest{Prompt: "p"})
		fault := providers.AsFault(err)
		if fault == nil || fault.Kind != tc.kind || fault.Blame != tc.blame || fault.Key != tc.key || fault.Accepted != tc.accepted {
			t.Errorf("%d %s: got %+v", tc.status, tc.reason, fault)
		}
	}
}

// TestVideoAnswers: answers about a task in addition to the fixtures.
func TestVideoAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, body string
		want       providers.VideoFailure
	}{
		{
			"cancelled", `{"state":"failed","err_code":"UserCancelled","credits":0}`,
			providers.VideoFailure{Code: providers.FailedVendor, Message: "UserCancelled"},
		},
		{
			"its own and free", `{"state":"failed","err_code":"InternalServiceFailure","credits":0}`,
			providers.VideoFailure{Code: providers.FailedVendor, Message: "InternalServiceFailure", Retryable: true},
		},
		{
			"its own and paid", `{"state":"failed","err_code":"InternalServiceFailure","credits":20}`,
			providers.VideoFailure{Code: providers.FailedVendor, Message: "InternalServiceFailure", Billed: true},
		},
		{
			"a bad image", `{"state":"failed","err_code":"ImageDownloadFailure"}`,
			providers.VideoFailure{Code: providers.FailedInput, Message: "ImageDownloadFailure"},
		},
		{
			"a moderated image", `{"state":"failed","err_code":"PhotoAuditNotPass"}`,
			providers.VideoFailure{Code: providers.FailedContent, Message: "PhotoAuditNotPass"},
		},
		{
			"no credit", `{"state":"failed","err_code":"CreditInsufficient"}`,
			providers.VideoFailure{Code: providers.FailedQuota, Message: "CreditInsufficient"},
		},
		{"no reason", `{"state":"failed"}`, providers.VideoFailure{
			Code:    providers.FailedVendor,
			Message: `The upstream's job ended as "failed".`,
		}},
	} {
		got, err := providertest.VideoExchange{New: newVideos, Answer: tc.body}.Poll(t, providers.Ticket{Job: "1"})
		if err != nil || got.State != providers.JobFailed || got.Failure == nil || *got.Failure != tc.want {
			t.Errorf("%s: got %+v, %v, %v", tc.name, got, got.Failure, err)
		}
	}
	running, err := providertest.VideoExchange{New: newVideos, Answer: `{"state":"processing","progress":42}`}.Poll(t,
		providers.Ticket{Job: "1"})
	if err != nil || running.Progress != 42 {
		t.Errorf("got %+v, %v", running, err)
	}
	if late, err := (providertest.VideoExchange{New: newVideos, Answer: `{"state":"success","creations":[]}`}).Poll(t,
		providers.Ticket{Job: "1"}); err == nil {
		t.Errorf("got %+v", late)
	}
}

// serve starts a vendor and returns the adapter and its target there.
func serve(t *testing.T, answer http.HandlerFunc) (*vidu.Videos, providers.Target) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	// Both ways of writing the address lead to the same paths.
	return vidu.NewVideos(client), providers.Target{Channel: providers.Channel{BaseURL: server.URL + "/ent/v2"}, Key: "k", Model: "viduq2"}
}

// TestVideoNotStopped: a job that has begun is not stopped, one that has ended need not be.
func TestVideoNotStopped(t *testing.T) {
	t.Parallel()
	for state, stops := range map[string]bool{"processing": false, "success": true, "failed": true} {
		adapter, to := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"code":400,"reason":"BadRequest","message":"task state is scheduled, can not cancel","metadata":{}}`)
				return
			}
			_, _ = fmt.Fprintf(w, `{"state":%q}`, state)
		})
		err := adapter.Cancel(t.Context(), to, providers.Ticket{Job: "1"})
		fault := providers.AsFault(err)
		if stops != (err == nil) || !stops && (fault.Kind != providers.Conflict || fault.Accepted != providers.NotAccepted) {
			t.Errorf("%s: got %v", state, err)
		}
	}
}

// TestVideoFind: only a list that was read whole, with each payload, proves that there is no job.
func TestVideoFind(t *testing.T) {
	t.Parallel()
	page := func(n int, item string) string { // n items
		return strings.TrimSuffix(strings.Repeat(item+",", n), ",")
	}
	const other, silent = `{"id":"1","prompt":"x","payload":""}`, `{"id":"2","prompt":"p"}`
	for _, tc := range []struct {
		name     string
		pages    []string // by number, the last stands for those that follow
		creation string
		job      string
		accepted providers.Accepted
	}{
		{"an empty list", []string{`{"tasks":[]}`}, "", "", providers.AcceptedUnknown},
		{"others", []string{`{"tasks":[` + other + `]}`}, "", "", providers.AcceptedUnknown},
		{
			"on the second page",
			[]string{`{"tasks":[` + other + `],"next_page_token":"t"}`, `{"tasks":[{"id":7,"payload":"video_1-1"}]}`},
			"", "7",
			providers.AcceptedUnknown,
		},
		{
			"a full page without a token",
			[]string{`{"tasks":[` + page(100, other) + `]}`, `{"tasks":[{"id":7,"payload":"video_1-1"}]}`},
			"", "7",
			providers.AcceptedUnknown,
		},
		{"always the same page", []string{`{"tasks":[` + other + `],"next_page_token":"t"}`}, "", "", providers.AcceptedUnknown},
		{"a payload in the task alone", []string{`{"tasks":[` + silent + `]}`}, `{"payload":"video_1-1"}`, "2", providers.AcceptedUnknown},
		{"another payload in the task", []string{`{"tasks":[` + silent + `]}`}, `{"payload":"video_1-2"}`, "", providers.AcceptedUnknown},
		{"no payload anywhere", []string{`{"tasks":[` + silent + `]}`}, `{}`, "", providers.AcceptedUnknown},
		{"no payload in a task that is not alike", []string{`{"tasks":[{"id":"3","prompt":"x"}]}`}, `{}`, "", providers.AcceptedUnknown},
		{"more than can be read", []string{`{"tasks":[` + page(30, silent) + `]}`}, `{"payload":""}`, "", providers.AcceptedUnknown},
		{"no list", []string{`{}`}, "", "", providers.AcceptedUnknown},
	} {
		adapter, to := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/creations") {
				_, _ = io.WriteString(w, tc.creation)
				return
			}
			n := 0
			_, _ = fmt.Sscan(r.URL.Query().Get("pager.page"), &n)
			_, _ = io.WriteString(w, tc.pages[min(n, len(tc.pages)-1)])
		})
		ticket, err := adapter.Find(t.Context(), to, providers.VideoRequest{Prompt: "p", IdempotencyKey: "video_1-1"})
		if tc.job != "" {
			if err != nil || ticket.Job != tc.job {
				t.Errorf("%s: got %+v, %v", tc.name, ticket, err)
			}
			continue
		}
		if fault := providers.AsFault(err); fault == nil || fault.Accepted != tc.accepted {
			t.Errorf("%s: got %+v, %v", tc.name, ticket, fault)
		}
	}
}

type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) { return len(p), nil }
