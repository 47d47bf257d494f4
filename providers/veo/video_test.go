package veo_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/providertest"
	"modelrelay/providers/upstream"
	"modelrelay/providers/veo"
)

const (
	modelPath   = "/projects/p1/locations/us-central1/publishers/google/models/up"
	accessToken = "ya29.of-the-account"
)

// service hands out access tokens for service accounts.
type service struct {
	*httptest.Server
	made   atomic.Int32
	refuse atomic.Int32 // the status that it answers with, 0 for a token
}

func newService(tb testing.TB) *service {
	tb.Helper()
	s := new(service)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || r.FormValue("assertion") == "" {
			tb.Errorf("got form %v", r.Form)
		}
		w.Header().Set("Content-Type", "application/json")
		if status := s.refuse.Load(); status != 0 {
			w.WriteHeader(int(status))
			_, _ = io.WriteString(w, `{"error":"invalid_grant"}`)
			return
		}
		s.made.Add(1)
		_, _ = io.WriteString(w, `{"access_token":"`+accessToken+`","token_type":"Bearer","expires_in":3600}`)
	}))
	tb.Cleanup(s.Close)
	return s
}

// privateKey is the key of all service accounts: generating one takes long.
var privateKey = sync.OnceValues(func() ([]byte, error) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	return x509.MarshalPKCS8PrivateKey(private)
})

// key is the JSON of another service account at each call; %s in it is where the suite's secret goes.
func (s *service) key(tb testing.TB) string {
	tb.Helper()
	raw, err := privateKey()
	if err != nil {
		tb.Fatal(err)
	}
	doc, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "p1", "private_key_id": "%s", "client_email": "a@p1.iam.gserviceaccount.com", "token_uri": s.URL,
		"client_id":   rand.Text(),
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})),
	})
	if err != nil {
		tb.Fatal(err)
	}
	return string(doc)
}

func TestVideoCloud(t *testing.T) {
	t.Parallel()
	apart := upstream.NewClient(nil) // the suite watches what the adapter's own client reads
	t.Cleanup(apart.CloseIdleConnections)
	providertest.TestVideo(t, providertest.VideoSubject{
		New:     func(client *http.Client) providers.VideoAdapter { return veo.NewVideosAt(client, apart) },
		Channel: providers.Channel{Vendor: "veo"},
		Key:     newService(t).key(t),
		Answers: os.DirFS("testdata/cloud"),
		Step: func(req *http.Request) providertest.VideoStep {
			switch req.Method + " " + req.URL.EscapedPath() {
			case "POST " + modelPath + ":predictLongRunning":
				return providertest.VideoSubmit
			case "POST " + modelPath + ":fetchPredictOperation":
				var body struct {
					OperationName string `json:"operationName"`
				}
				if json.NewDecoder(req.Body).Decode(&body) == nil && body.OperationName == modelPath[1:]+"/operations/1a2b" {
					return providertest.VideoPoll
				}
			case "GET /storage/v1/b/bkt/o/out%2Fsample_0.mp4":
				if req.URL.RawQuery == "alt=media" {
					return providertest.VideoContent
				}
			}
			return ""
		},
		Authorized: func(req *http.Request, _ providers.Secret) bool {
			return req.Header.Get("Authorization") == "Bearer "+accessToken && req.Header.Get("X-Goog-Api-Key") == ""
		},
		Job:         modelPath[1:] + "/operations/1a2b",
		Failure:     providers.VideoFailure{Code: providers.FailedInput, Message: "3: The image could not be read."},
		Upload:      upload,
		VideoTraits: providertest.VideoTraits{BareUploads: true, NoQueue: true, NoLinks: true},
	})
}

func TestVideoGemini(t *testing.T) {
	t.Parallel()
	providertest.TestVideo(t, providertest.VideoSubject{
		New:     func(client *http.Client) providers.VideoAdapter { return veo.NewVideos(client) },
		Channel: providers.Channel{Vendor: "veo"},
		Answers: os.DirFS("testdata/gemini"),
		Step: func(req *http.Request) providertest.VideoStep {
			switch req.Method + " " + req.URL.EscapedPath() {
			case "POST /models/up:predictLongRunning":
				return providertest.VideoSubmit
			case "GET /models/up/operations/1a2b":
				return providertest.VideoPoll
			}
			return ""
		},
		Authorized: func(req *http.Request, key providers.Secret) bool {
			return req.Header.Get("X-Goog-Api-Key") == key.Reveal() && req.Header.Get("Authorization") == "" && req.URL.Query().Get("key") == ""
		},
		Job:         "models/up/operations/1a2b",
		Failure:     providers.VideoFailure{Code: providers.FailedInput, Message: "3: The image could not be read."},
		Upload:      upload,
		VideoTraits: providertest.VideoTraits{BareUploads: true, NoQueue: true, NoLinks: true},
	})
}

func upload(req *http.Request) (providertest.Upload, error) {
	var body struct {
		Instances []struct {
			Image struct {
				Bytes    []byte `json:"bytesBase64Encoded"`
				MimeType string `json:"mimeType"`
			} `json:"image"`
		} `json:"instances"`
	}
	err := json.NewDecoder(req.Body).Decode(&body)
	if err != nil || len(body.Instances) != 1 || body.Instances[0].Image.MimeType != "image/png" {
		return providertest.Upload{}, err
	}
	return providertest.Upload{Data: body.Instances[0].Image.Bytes}, nil
}

// at is an adapter and a target with an API key at a server that answers so.
func at(tb testing.TB, answer http.HandlerFunc) (*veo.Videos, providers.Target) {
	tb.Helper()
	server := httptest.NewServer(answer)
	tb.Cleanup(server.Close)
	client := upstream.NewClient(nil)
	tb.Cleanup(client.CloseIdleConnections)
	return veo.NewVideos(client), providers.Target{
		Channel: providers.Channel{BaseURL: server.URL + "/v1beta"}, Key: "secret",
		Model: "veo-3.1-generate-001",
	}
}

// onCloud is a target with a service account.
func onCloud(tb testing.TB, to providers.Target, s *service) providers.Target {
	tb.Helper()
	to.Key = providers.Secret(strings.Replace(s.key(tb), "%s", "id", 1))
	to.Channel.BaseURL = strings.Replace(to.Channel.BaseURL, "/v1beta", "/v1/projects/p2/locations/global", 1)
	return to
}

// file is an upload whose bytes are its role's name.
func file(role providers.InputRole, kind string) providers.Media {
	return providers.Media{Role: role, Object: "o", ContentType: kind, Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("bytes of " + string(role))), nil
	}}
}

func encoded(role providers.InputRole) string {
	return base64.StdEncoding.EncodeToString([]byte("bytes of " + string(role)))
}

func TestVideoCreate(t *testing.T) {
	t.Parallel()
	on, seed := true, int64(7)
	tokens := newService(t)
	for _, tc := range []struct {
		name, model string
		cloud       bool
		req         providers.VideoRequest
		path, want  string
	}{
		{
			"a prompt", "veo-9", true,
			providers.VideoRequest{Prompt: "p", N: 3},
			"/v1/projects/p2/locations/global/publishers/google/models/veo-9:predictLongRunning",
			`{"instances":[{"prompt":"p"}],"parameters":{"sampleCount":3}}`,
		},
		{
			"everything", "veo-3.1-generate-001", true,
			providers.VideoRequest{
				Prompt: "p", NegativePrompt: "n", Seconds: "6.0", Width: 3840, Height: 2160, FPS: 24, GenerateAudio: &on, Seed: &seed,
				Inputs: []providers.Media{file(providers.FirstFrame, "image/png"), file(providers.LastFrame, "image/jpeg")},
				Extra:  json.RawMessage(`{"personGeneration":"allow_adult","labels":{"a":"b"},"parameters":{"storageUri":"gs://b/x","seed":1},"sampleCount":4}`),
			},
			"/v1/projects/p2/locations/global/publishers/google/models/veo-3.1-generate-001:predictLongRunning",
			`{"instances":[{"image":{"bytesBase64Encoded":"` + encoded(providers.FirstFrame) +
				`","mimeType":"image/png"},"lastFrame":{"bytesBase64Encoded":"` + encoded(providers.LastFrame) +
				`","mimeType":"image/jpeg"},"prompt":"p"}],"labels":{"a":"b"},"parameters":{"aspectRatio":"16:9","durationSeconds":6,"generateAudio":true,"negativePrompt":"n",` +
				`"personGeneration":"allow_adult","resolution":"4k","sampleCount":1,"seed":7,"storageUri":"gs://b/x"}}`,
		},
		{
			"references", "veo-3.1-fast-generate-001", false,
			providers.VideoRequest{Prompt: "p", Seconds: "8", GenerateAudio: &on, Inputs: []providers.Media{file(providers.Reference, "image/png")}},
			"/v1beta/models/veo-3.1-fast-generate-001:predictLongRunning",
			`{"instances":[{"prompt":"p","referenceImages":[{"image":{"bytesBase64Encoded":"` + encoded(providers.Reference) +
				`","mimeType":"image/png"},"referenceType":"asset"}]}],` +
				`"parameters":{"durationSeconds":8,"sampleCount":1}}`,
		},
		{
			"an extension", "veo-3.1-generate-preview", false,
			providers.VideoRequest{Inputs: []providers.Media{file(providers.ExtendVideo, "video/mp4")}},
			"/v1beta/models/veo-3.1-generate-preview:predictLongRunning",
			`{"instances":[{"video":{"encodedVideo":"` + encoded(providers.ExtendVideo) +
				`","encoding":"video/mp4"}}],"parameters":{"sampleCount":1}}`,
		},
		{
			"an extension on Google Cloud", "veo-3.1-generate-001", true,
			providers.VideoRequest{Inputs: []providers.Media{file(providers.ExtendVideo, "video/mp4")}},
			"/v1/projects/p2/locations/global/publishers/google/models/veo-3.1-generate-001:predictLongRunning",
			`{"instances":[{"video":{"bytesBase64Encoded":"` + encoded(providers.ExtendVideo) +
				`","mimeType":"video/mp4"}}],"parameters":{"sampleCount":1}}`,
		},
	} {
		var path, sent string
		adapter, to := at(t, func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			path, sent = r.URL.Path, string(raw)
			_, _ = io.WriteString(w, `{"name":"1"}`)
		})
		if tc.cloud {
			to = onCloud(t, to, tokens)
		}
		to.Model = tc.model
		_, err := adapter.Submit(t.Context(), to, tc.req)
		if err != nil || path != tc.path || sent != tc.want {
			t.Errorf("%s: got %s %s, %v, want %s %s", tc.name, path, sent, err, tc.path, tc.want)
		}
	}
}

func TestVideoCreateRefused(t *testing.T) {
	t.Parallel()
	off, seed, large := false, int64(7), int64(1)<<33
	const full, lite, two = "veo-3.1-generate-001", "veo-3.1-lite-generate-001", "veo-2.0-generate-001"
	image, last, reference := file(providers.FirstFrame, "image/png"), file(providers.LastFrame, "image/png"),
		file(providers.Reference, "image/png")
	video := file(providers.ExtendVideo, "video/mp4")
	tokens := newService(t)
	for _, tc := range []struct {
		name, model, field string
		cloud              bool
		req                providers.VideoRequest
	}{
		{"seconds", full, "seconds", true, providers.VideoRequest{Prompt: "p", Seconds: "5"}},
		{"broken seconds", "veo-9", "seconds", true, providers.VideoRequest{Prompt: "p", Seconds: "5.5"}},
		{"short from references", full, "seconds", true, providers.VideoRequest{Prompt: "p", Seconds: "4", Inputs: []providers.Media{reference}}},
		{
			"the length of an extension", full, "seconds", true,
			providers.VideoRequest{Prompt: "p", Seconds: "8", Inputs: []providers.Media{video}},
		},
		{"short and large", full, "seconds", false, providers.VideoRequest{Prompt: "p", Seconds: "4", Resolution: "1080p"}},
		{"a size", full, "width", true, providers.VideoRequest{Prompt: "p", Width: 1000, Height: 1000}},
		{"a ratio", full, "aspect_ratio", true, providers.VideoRequest{Prompt: "p", AspectRatio: "1:1"}},
		{"a resolution", lite, "resolution", true, providers.VideoRequest{Prompt: "p", Resolution: "4k"}},
		{"a last frame alone", full, "last_image", true, providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{last}}},
		{"references of lite", lite, "reference_images", true, providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{reference}}},
		{
			"references with frames", full, "reference_images", true,
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{image, reference}},
		},
		{
			"too many references", full, "reference_images", true,
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{reference, reference, reference, reference}},
		},
		{"a video with a frame", full, "video", true, providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{image, video}}},
		{"a video to edit", full, "video", true, providers.VideoRequest{
			Prompt: "p",
			Inputs: []providers.Media{file(providers.SourceVideo, "video/mp4")},
		}},
		{"a link", full, "image", true, providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{{URL: "https://h/a.png"}}}},
		{"a large image", full, "image", true, providers.VideoRequest{
			Prompt: "p",
			Inputs: []providers.Media{{Object: "o", ContentType: "image/png", Size: 21 << 20}},
		}},
		{
			"an image of another kind", full, "image", true,
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{file(providers.FirstFrame, "image/webp")}},
		},
		{"an empty prompt", full, "prompt", true, providers.VideoRequest{}},
		{"several", full, "n", true, providers.VideoRequest{Prompt: "p", N: 5}},
		{"another rate", full, "fps", true, providers.VideoRequest{Prompt: "p", FPS: 30}},
		{"a large seed", full, "seed", true, providers.VideoRequest{Prompt: "p", Seed: &large}},
		{"a seed at the Gemini API", full, "seed", false, providers.VideoRequest{Prompt: "p", Seed: &seed}},
		{"silence at the Gemini API", full, "generate_audio", false, providers.VideoRequest{Prompt: "p", GenerateAudio: &off}},
		{"sound of Veo 2", two, "generate_audio", true, providers.VideoRequest{Prompt: "p", GenerateAudio: new(true)}},
		{"instances", full, "instances", true, providers.VideoRequest{Prompt: "p", Extra: json.RawMessage(`{"instances":[]}`)}},
		{"parameters that are none", full, "parameters", true, providers.VideoRequest{Prompt: "p", Extra: json.RawMessage(`{"parameters":7}`)}},
	} {
		adapter, to := at(t, func(http.ResponseWriter, *http.Request) { t.Errorf("%s was sent", tc.name) })
		if tc.cloud {
			to = onCloud(t, to, tokens)
		}
		to.Model = tc.model
		_, err := adapter.Submit(t.Context(), to, tc.req)
		if fault := providers.AsFault(err); fault == nil || fault.Param != tc.field || fault.Kind != providers.Invalid ||
			fault.Accepted != providers.NotAccepted {
			t.Errorf("%s: got %v, want %s refused", tc.name, err, tc.field)
		}
	}
}

// TestVideoAnswers: what operations end as.
func TestVideoAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, body string
		want       providers.VideoFailure
	}{
		{
			"held back", `{"done":true,"response":{"raiMediaFilteredCount":1,"raiMediaFilteredReasons":["The prompt violates a policy."]}}`,
			providers.VideoFailure{Code: providers.FailedContent, Message: "raiMediaFiltered: The prompt violates a policy."},
		},
		{
			"held back by the Gemini API", `{"done":true,"response":{"generateVideoResponse":{"raiMediaFilteredCount":1,"raiMediaFilteredReasons":["Sound."]}}}`,
			providers.VideoFailure{Code: providers.FailedContent, Message: "raiMediaFiltered: Sound."},
		},
		{
			"refused", `{"done":true,"error":{"code":3,"message":"It violates usage guidelines. Support code: 15236754"}}`,
			providers.VideoFailure{Code: providers.FailedContent, Message: "3: It violates usage guidelines. Support code: 15236754"},
		},
		{
			"its own", `{"done":true,"error":{"code":13,"message":"m"}}`,
			providers.VideoFailure{Code: providers.FailedVendor, Message: "13: m", Retryable: true},
		},
		{
			"late", `{"done":true,"error":{"code":4,"message":"m"}}`,
			providers.VideoFailure{Code: providers.FailedTimeout, Message: "4: m", Retryable: true},
		},
		{"exhausted", `{"done":true,"error":{"code":8,"message":"m"}}`, providers.VideoFailure{Code: providers.FailedQuota, Message: "8: m"}},
	} {
		adapter, to := at(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tc.body) })
		got, err := adapter.Poll(t.Context(), to, providers.Ticket{Job: "models/m/operations/1"})
		if err != nil || got.State != providers.JobFailed || *got.Failure != tc.want {
			t.Errorf("%s: got %+v, %v", tc.name, got.Failure, err)
		}
	}
	adapter, to := at(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"done":true,"response":{}}`) })
	if got, err := adapter.Poll(t.Context(), to, providers.Ticket{Job: "1"}); err == nil {
		t.Errorf("nothing: got %+v, want a fault", got)
	}
}

// TestToken: a token serves until it is refused, and what fails before there is one was not sent.
func TestToken(t *testing.T) {
	t.Parallel()
	tokens := newService(t)
	var status atomic.Int32
	status.Store(http.StatusOK)
	adapter, to := at(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+accessToken {
			t.Errorf("got %q", r.Header.Get("Authorization"))
		}
		w.WriteHeader(int(status.Load()))
		_, _ = io.WriteString(w, `{"name":"1"}`)
	})
	to = onCloud(t, to, tokens)
	submit := func() *providers.Fault {
		_, err := adapter.Submit(t.Context(), to, providers.VideoRequest{Prompt: "p"})
		return providers.AsFault(err)
	}
	for range 2 {
		if fault := submit(); fault != nil || tokens.made.Load() != 1 {
			t.Fatalf("got %v, %d tokens", fault, tokens.made.Load())
		}
	}
	status.Store(http.StatusUnauthorized)
	if fault := submit(); fault == nil || fault.Blame != providers.BlameKey || fault.Key != providers.KeyBusy ||
		fault.Accepted != providers.NotAccepted {
		t.Errorf("a token that is refused: got %+v", fault)
	}
	status.Store(http.StatusOK)
	if fault := submit(); fault != nil || tokens.made.Load() != 2 {
		t.Errorf("got %v, %d tokens, want a new one", fault, tokens.made.Load())
	}
	for answer, trouble := range map[int32]providers.KeyFault{
		http.StatusBadRequest:         providers.KeyRefused,
		http.StatusServiceUnavailable: providers.KeyBusy,
	} {
		fresh := onCloud(t, to, tokens)
		tokens.refuse.Store(answer)
		_, err := adapter.Submit(t.Context(), fresh, providers.VideoRequest{Prompt: "p"})
		if fault := providers.AsFault(err); fault == nil || fault.Blame != providers.BlameKey || fault.Key != trouble ||
			fault.Accepted != providers.NotAccepted || !fault.Retryable() {
			t.Errorf("%d: got %+v", answer, fault)
		}
	}
}

func TestChecks(t *testing.T) {
	t.Parallel()
	for key, good := range map[string]bool{
		"an-api-key": true, veo.ApplicationDefault: true, `{"type":"service_account"}`: true, `{"type":"authorized_user"}`: false, "{": false,
	} {
		if err := veo.CheckKey(providers.Secret(key)); (err == nil) != good {
			t.Errorf("key %s: got %v", key, err)
		}
	}
	for address, good := range map[string]bool{
		"https://h/v1/projects/p/locations/l": true, "https://h/v1beta": true, "https://h/x/v1beta": true,
		"https://h": false, "https://h/v1": false, "https://h/v1/projects/p": false, "https://h/v1/projects/p/locations/l/models": false,
	} {
		at, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if err := veo.CheckBaseURL(at); (err == nil) != good {
			t.Errorf("%s: got %v", address, err)
		}
	}
}

const clipHead = "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2"

// inline answers with videos of so many bytes in the operation itself.
func inline(sizes ...int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"name":"1","done":true,"response":{"videos":[{"gcsUri":"gs://b/o"}`)
		for _, size := range sizes {
			_, _ = io.WriteString(w, `,{"bytesBase64Encoded":"`)
			encoder := base64.NewEncoder(base64.StdEncoding, w)
			_, _ = io.WriteString(encoder, clipHead)
			block := make([]byte, 32<<10)
			for left := size - len(clipHead); left > 0; left -= len(block) {
				_, _ = encoder.Write(block[:min(left, len(block))])
			}
			_ = encoder.Close()
			_, _ = io.WriteString(w, `","mimeType":"video/mp4"}`)
		}
		_, _ = io.WriteString(w, `]}}`)
	}
}

// ticket is that of a job on Google Cloud.
func ticket() providers.Ticket {
	return providers.Ticket{Job: "1", Data: json.RawMessage(`{"model":"/publishers/google/models/m"}`)}
}

func TestVideoInline(t *testing.T) {
	t.Parallel()
	adapter, to := at(t, inline(100_001, 200_002))
	to = onCloud(t, to, newService(t))
	got, err := adapter.Poll(t.Context(), to, ticket())
	if err != nil || got.State != providers.JobDone || got.Outputs != 3 {
		t.Fatalf("got %+v, %v", got, err)
	}
	for output, want := range map[int]int{1: 100_001, 2: 200_002} {
		video, err := adapter.Open(t.Context(), to, ticket(), output)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, video.Body)
		_ = video.Body.Close()
		if err != nil || n != int64(want) || video.ContentType != "video/mp4" {
			t.Errorf("%d: got %d bytes of %s, %v, want %d", output, n, video.ContentType, err, want)
		}
	}
	if _, err := adapter.Open(t.Context(), to, ticket(), 3); providers.AsFault(err).Kind != providers.NotFound {
		t.Errorf("got %v", err)
	}
}

// inlineSize is that of a large video within an answer, and mostMemory what may be allocated for it, in bytes.
const inlineSize, mostMemory = 50 << 20, 8 << 20

func BenchmarkPoll(b *testing.B) {
	adapter, to := at(b, inline(inlineSize))
	to = onCloud(b, to, newService(b))
	providertest.Bounded(b, mostMemory, func() {
		if got, err := adapter.Poll(b.Context(), to, ticket()); err != nil || got.State != providers.JobDone {
			b.Fatalf("got %+v, %v", got, err)
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	adapter, to := at(b, inline(inlineSize))
	to = onCloud(b, to, newService(b))
	providertest.Bounded(b, mostMemory, func() {
		video, err := adapter.Open(b.Context(), to, ticket(), 1)
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, video.Body)
		_ = video.Body.Close()
		if err != nil || n != inlineSize {
			b.Fatalf("got %d bytes, %v", n, err)
		}
	})
}

// TestApart: the cached access tokens of a typed key belong to the adapter that Apart returns. They do not enter the shared cache.
func TestApart(t *testing.T) {
	t.Parallel()
	tokens := newService(t)
	adapter, to := at(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"name":"1"}`) })
	own, typed := onCloud(t, to, tokens), onCloud(t, to, tokens)
	submit := func(at providers.VideoAdapter, to providers.Target) {
		t.Helper()
		if _, err := at.Submit(t.Context(), to, providers.VideoRequest{Prompt: "p"}); err != nil {
			t.Fatal(err)
		}
	}
	submit(adapter, own)
	if _, err := adapter.Apart(typed.Key, nil); err == nil {
		t.Fatal("an account that names an address of its own was taken")
	}
	apart, err := adapter.Apart(typed.Key, []providers.Secret{typed.Key})
	if err != nil {
		t.Fatal(err)
	}
	submit(apart, typed)
	submit(apart, typed)
	submit(adapter, own)
	if made, kept := tokens.made.Load(), adapter.Kept(); made != 2 || kept != 1 {
		t.Errorf("%d tokens were made, and %d keys have an entry; want 2 and 1", made, kept)
	}
}

// TestApartRefuses: a typed key must not make the gateway call an address of its choice, or use the machine's own identity.
func TestApartRefuses(t *testing.T) {
	t.Parallel()
	own := []providers.Secret{"an-api-key", `{"type":"service_account","token_uri":"https://oauth2.own.example/token"}`}
	for key, leads := range map[string]bool{
		"":                           false,
		"an-api-key":                 false,
		"{":                          false,
		veo.ApplicationDefault:       true,
		" application-default\n":     true, // which is taken for it
		`{"type":"service_account"}`: false,
		`{"token_uri":"https://oauth2.googleapis.com/token"}`:        false,
		`{"token_uri":"https://accounts.google.com/o/oauth2/token"}`: false,
		`{"token_uri":"https://oauth2.own.example/token"}`:           false,
		`{"token_uri":"https://oauth2.other.example/token"}`:         true,
		`{"Token_URI":"https://oauth2.other.example/token"}`:         true, // as the library reads it
		`{"token_uri":"http://oauth2.googleapis.com/token"}`:         true,
	} {
		if _, err := veo.NewVideos(http.DefaultClient).Apart(providers.Secret(key), own); (err != nil) != leads {
			t.Errorf("%q: got %v, want refused %t", key, err, leads)
		}
	}
}
