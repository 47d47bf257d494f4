package upstream_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"modelrelay/dev/upstream"
)

// videoVendor is one fake as its vendor's client sees it. In paths and bodies {id} stands for the job's id.
type videoVendor struct {
	name   string
	header []string // other than the usual ones
	create string   // method, path
	body   string
	id     string // where the answer has the job's id
	read   string // method, path
	ask    string // the body of a read
	state  string // where the answer has the vendor's word; "" where it has none
	words  string // of a job that waits, runs, is done, has failed
	link   string // where the answer has the link
	keyed  bool   // the link wants the key
	lost   int    // the status for a job that is not known
}

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func videoVendors() []videoVendor {
	runway := []string{"X-Runway-Version", "2024-11-06"}
	google := []string{"Authorization", "", "X-Goog-Api-Key", testKey}
	return []videoVendor{
		{
			name: "runway", header: runway, create: "POST /runway/v1/image_to_video",
			body: `{"model":"gen4.5","promptText":"a cat","promptImage":[{"uri":"data:image/png;base64,` + pixel +
				`","position":"first"}],"ratio":"960:960","duration":5}`,
			id: "id", read: "GET /runway/v1/tasks/{id}", state: "status", words: "PENDING RUNNING SUCCEEDED FAILED", link: "output.0", lost: 404,
		},
		{
			name: "luma", create: "POST /luma/v1/generations",
			body: `{"model":"ray-3.2","type":"video","prompt":"a cat","aspect_ratio":"16:9","video":{"duration":"5s","start_frame":{"data":"` +
				pixel + `","media_type":"image/png"}}}`,
			id: "id", read: "GET /luma/v1/generations/{id}", state: "state", words: "queued processing completed failed", link: "output.0.url",
			lost: 404,
		},
		{
			name: "xai", create: "POST /xai/v1/videos/generations",
			body: `{"model":"grok-imagine-video","prompt":"a cat","duration":6,"image":{"url":"data:image/png;base64,` + pixel + `"}}`,
			id:   "request_id", read: "GET /xai/v1/videos/{id}", state: "status", words: " pending done failed", link: "video.url", lost: 404,
		},
		{
			name: "ark", create: "POST /ark/api/v3/contents/generations/tasks",
			body: `{"model":"doubao-seedance-2-0-260128","content":[{"type":"text","text":"a cat"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + pixel + `"},"role":"first_frame"}],"duration":5,"safety_identifier":"mr-1"}`,
			id:   "id", read: "GET /ark/api/v3/contents/generations/tasks/{id}", state: "status", words: "queued running succeeded failed",
			link: "content.video_url", lost: 404,
		},
		{
			name: "omni", header: google, create: "POST /omni/v1beta/interactions",
			body: `{"model":"gemini-omni-1.2-flash","input":[{"type":"image","mime_type":"image/png","data":"` + pixel +
				`"},{"type":"text","text":"a cat"}],"background":true,` +
				`"generation_config":{"video_config":{"task":"image_to_video"}},"response_format":{"type":"video","duration":"6s","delivery":"uri"}}`,
			id: "id", read: "GET /omni/v1/interactions/{id}", state: "status", words: "queued in_progress completed failed",
			link: "steps.1.content.0.uri", keyed: true, lost: 400,
		},
		{
			name: "veo", header: google, create: "POST /veo/v1beta/models/veo-3.1-generate-preview:predictLongRunning",
			body: `{"instances":[{"prompt":"a cat","image":{"bytesBase64Encoded":"` + pixel +
				`","mimeType":"image/png"}}],"parameters":{"sampleCount":1,"durationSeconds":8}}`,
			id: "name", read: "GET /veo/v1beta/{id}", link: "response.generateVideoResponse.generatedSamples.0.video.uri", keyed: true, lost: 404,
		},
	}
}

func (f *fake) call(t *testing.T, route, body string, header []string) answer {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	return f.do(t, method, path, body, header...)
}

// dig is at for a path written with dots.
func dig(v any, path string) any {
	for step := range strings.SplitSeq(path, ".") {
		if len(step) == 1 && step[0] >= '0' && step[0] <= '9' {
			v = at(v, int(step[0]-'0'))
		} else {
			v = at(v, step)
		}
	}
	return v
}

// TestVideoJobs makes a job at each vendor and reads it in each of its states.
func TestVideoJobs(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	f.control(t, "POST", "rules", `{"operation":"video.create","action":"manual"}`)
	for _, v := range videoVendors() {
		t.Run(v.name, func(t *testing.T) {
			made := f.call(t, v.create, v.body, v.header)
			if made.status/100 != 2 {
				t.Fatalf("create: %d %s", made.status, made.body)
			}
			name, _ := dig(made.json(t), v.id).(string)
			id := name[strings.LastIndexByte(name, '/')+1:]
			wants(t, f.control(t, "GET", "jobs/"+id, ""), map[string]any{"vendor": v.name, "prompt": "a cat", "submissions": 1, "input_bytes": 70})
			words := strings.Split(v.words, " ")
			read := strings.ReplaceAll(v.read, "{id}", name)
			var link string
			for i, state := range []string{"queued", "in_progress", "completed", "failed"} {
				f.control(t, "POST", "jobs/"+id, `{"state":"`+state+`","progress":50}`)
				got := f.call(t, read, v.ask, v.header)
				if got.status/100 != 2 {
					t.Fatalf("%s: %d %s", state, got.status, got.body)
				}
				if v.state != "" && words[i] != "" {
					wants(t, got.json(t), map[string]any{v.state: words[i]})
				}
				if state == "completed" {
					link, _ = dig(got.json(t), v.link).(string)
					f.wantsContent(t, v, id, link)
				}
			}
			f.control(t, "POST", "jobs/"+id, `{"forgotten":true}`)
			if got := f.call(t, read, v.ask, v.header); got.status != v.lost {
				t.Errorf("forgotten: %d %s, want %d", got.status, got.body, v.lost)
			}
			// An unknown key, and a member that is misplaced, are refused.
			wrong := append(append([]string(nil), v.header...), "Authorization", "Bearer wrong")
			if v.keyed {
				wrong = []string{"Authorization", "", "X-Goog-Api-Key", "wrong"}
			}
			if got := f.call(t, v.create, v.body, wrong); got.status/100 != 4 {
				t.Errorf("a wrong key: %d %s", got.status, got.body)
			}
			if got := f.call(t, v.create, strings.Replace(v.body, "{", `{"no_such_member":1,`, 1), v.header); got.status/100 != 4 {
				t.Errorf("a strange member: %d %s", got.status, got.body)
			}
		})
	}
}

// wantsContent reads a result as its vendor allows it.
func (f *fake) wantsContent(t *testing.T, v videoVendor, id, link string) {
	t.Helper()
	path := strings.TrimPrefix(link, f.url)
	header := []string{"Authorization", ""}
	if v.keyed {
		if got := f.do(t, "GET", path, "", header...); got.status/100 != 4 {
			t.Errorf("without the key: %d", got.status)
		}
		header = v.header
	}
	got := f.do(t, "GET", path, "", header...)
	sum := sha256.Sum256(got.body)
	if want := f.control(t, "GET", "jobs/"+id, "")["sha256"]; got.status != http.StatusOK || hex.EncodeToString(sum[:]) != want {
		t.Errorf("%s: %d with %d bytes, which are not the job's", link, got.status, len(got.body))
	}
	if head := f.do(t, "HEAD", path, "", header...); v.name == "ark" && head.status != http.StatusForbidden {
		t.Errorf("HEAD: %d, want 403", head.status)
	}
}

// TestVideoJobsRefuse: what each vendor does not take makes no job.
func TestVideoJobsRefuse(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	routes := map[string]videoVendor{}
	for _, v := range videoVendors() {
		routes[v.name] = v
	}
	for _, tc := range []struct{ vendor, route, body string }{
		{"runway", "POST /runway/v1/text_to_video", `{"model":"gen4.5","promptText":"p","ratio":"1280:720"}`},
		{"runway", "POST /runway/v1/text_to_video", `{"model":"gen4.5","promptText":"p","ratio":"16:9","duration":5}`},
		{"runway", "POST /runway/v1/text_to_video", `{"model":"gen4.5","promptText":"p","ratio":"1280:720","duration":"5"}`},
		{"runway", "POST /runway/v1/text_to_video", `{"model":"gen4_turbo","promptText":"p","ratio":"1280:720","duration":5}`},
		{
			"runway", "POST /runway/v1/image_to_video",
			`{"model":"gen4.5","promptText":"p","ratio":"1280:720","duration":5,"promptImage":[{"uri":"https://h/a","position":"last"}]}`,
		},
		{"runway", "POST /runway/v1/image_to_video", `{"model":"gen4_turbo","ratio":"1280:720","promptImage":"data:image/png;base64,AAAA"}`},
		{"runway", "POST /runway/v1/image_to_video", `{"model":"gen4_turbo","ratio":"1280:720","promptImage":"runway://nothing"}`},
		{"luma", "", `{"prompt":"p"}`},
		{"luma", "", `{"model":"ray-3.2","type":"video"}`},
		{"luma", "", `{"model":"ray-3.2","type":"video","prompt":"p","video":{"duration":5}}`},
		{"luma", "", `{"model":"ray-3.2","type":"video","prompt":"p","video":{"duration":"10s","start_frame":{"url":"https://h/a"}}}`},
		{"luma", "", `{"model":"ray-3.2","type":"video","prompt":"p","video":{"start_frame":{"data":"` + pixel + `"}}}`},
		{"luma", "", `{"model":"ray-3.2","type":"video","prompt":"p","seed":1}`},
		{"xai", "", `{"model":"grok-imagine-video","prompt":"p","duration":16}`},
		{"xai", "", `{"model":"grok-imagine-video","prompt":"p","resolution":"1080p"}`},
		{"xai", "", `{"model":"grok-imagine-video","prompt":"p","image":{"url":"https://h/a"},"reference_images":[{"url":"https://h/b"}]}`},
		{"xai", "", `{"model":"grok-imagine-video","prompt":"p","image":{"url":"https://h/a"},"last_frame":{"url":"https://h/b"}}`},
		{"xai", "POST /xai/v1/videos/edits", `{"model":"grok-imagine-video","prompt":"p","video":{"url":"https://h/a"},"duration":5}`},
		{"ark", "", `{"model":"doubao-seedance-2-0-260128","content":[]}`},
		{"ark", "", `{"model":"doubao-seedance-2-0-260128","content":[{"type":"text","text":"p"}],"seed":7}`},
		{"ark", "", `{"model":"doubao-seedance-2-0-260128","content":[{"type":"text","text":"p"}],"duration":3}`},
		{"ark", "", `{"model":"doubao-seedance-2-0-260128","content":[{"type":"image_url","image_url":{"url":"https://h/a"},"role":"last_frame"}]}`},
		{"ark", "", `{"model":"doubao-seedance-2-0-260128","content":[{"type":"image_url","image_url":{"url":"https://h/a"}},{"type":"image_url","image_url":{"url":"https://h/b"}}]}`},
		{"ark", "", `{"model":"doubao-seedance-2-0-260128","content":[{"type":"video_url","video_url":{"url":"data:video/mp4;base64,AAAA"},"role":"reference_video"}]}`},
		{"omni", "", `{"model":"gemini-omni-1.2-flash","input":"p","background":true,"response_format":{"type":"video","duration":6}}`},
		{"omni", "", `{"model":"gemini-omni-1.1-flash","input":"p","background":true,"response_format":{"type":"video","duration":"12s"}}`},
		{"omni", "", `{"model":"gemini-omni-1.2-flash","input":"p","background":true,"store":false,"response_format":{"type":"video"}}`},
		{"omni", "", `{"model":"gemini-omni-1.2-flash","input":"p","background":true,"generation_config":{"video_config":{"task":"edit"}},"response_format":{"type":"video"}}`},
		{"omni", "", `{"model":"gemini-omni-1.2-flash","input":"p","background":true,"previous_interaction_id":"v1_none","response_format":{"type":"video"}}`},
		{"veo", "", `{"instances":[{"prompt":"p"}],"parameters":{"seed":7}}`},
		{"veo", "", `{"instances":[{"prompt":"p"}],"parameters":{"durationSeconds":"8"}}`},
		{"veo", "", `{"instances":[{"prompt":"p"}],"parameters":{"durationSeconds":5}}`},
		{"veo", "", `{"instances":[{"prompt":"p","lastFrame":{"bytesBase64Encoded":"` + pixel + `","mimeType":"image/png"}}]}`},
		{"veo", "", `{"instances":[{"prompt":"p"},{"prompt":"q"}]}`},
	} {
		v := routes[tc.vendor]
		if tc.route == "" {
			tc.route = v.create
		}
		if got := f.call(t, tc.route, tc.body, v.header); got.status/100 != 4 {
			t.Errorf("%s %s: got %d %s", tc.route, tc.body, got.status, got.body)
		}
	}
	if got := f.do(t, "POST", "/runway/v1/text_to_video",
		`{"model":"gen4.5","promptText":"p","ratio":"1280:720","duration":5}`); got.status != http.StatusBadRequest {
		t.Errorf("runway without its version: %d", got.status)
	}
	wants(t, f.control(t, "GET", "stats", ""), map[string]any{"videos.created": 0})
}

// TestArkFinds: the list shows the mark of a create, and may be asked for once a second. What runs cannot be deleted.
func TestArkFinds(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	const tasks = "/ark/api/v3/contents/generations/tasks"
	made := f.do(t, "POST", tasks, `{"model":"doubao-seedance-2-0-260128-manual","content":[{"type":"text","text":"p"}],"safety_identifier":"mr-1"}`)
	id := textAt(t, made.json(t), "id")
	list := f.do(t, "GET", tasks+"?page_num=1&page_size=500&filter.model=doubao-seedance-2-0-260128-manual", "")
	wants(t, list.json(t), map[string]any{"total": 1, "items.0.id": id, "items.0.safety_identifier": "mr-1"})
	if again := f.do(t, "GET", tasks, ""); again.status != http.StatusTooManyRequests {
		t.Errorf("a second list at once: %d", again.status)
	}
	f.control(t, "POST", "jobs/"+id, `{"state":"in_progress"}`)
	if got := f.do(t, "DELETE", tasks+"/"+id, ""); got.status/100 != 4 {
		t.Errorf("the deletion of a running task: %d", got.status)
	}
	f.control(t, "POST", "jobs/"+id, `{"state":"completed"}`)
	if got := f.do(t, "DELETE", tasks+"/"+id, ""); got.status != http.StatusNoContent {
		t.Errorf("the deletion of an ended task: %d", got.status)
	}
	if got := f.do(t, "GET", tasks+"/"+id, ""); got.status != http.StatusNotFound {
		t.Errorf("a deleted task: %d", got.status)
	}
}

// TestRunwayUpload: a create may name what was uploaded, and the one route that cancels deletes what has ended.
func TestRunwayUpload(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	version := []string{"X-Runway-Version", "2024-11-06"}
	place := f.call(t, "POST /runway/v1/uploads", `{"filename":"a.png","type":"ephemeral"}`, version).json(t)
	image, _ := base64.StdEncoding.DecodeString(pixel)
	form := "--b\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\n" + textAt(t, place, "fields", "key") +
		"\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n" + string(image) +
		"\r\n--b--\r\n"
	sent := f.do(t, "POST", strings.TrimPrefix(textAt(t, place, "uploadUrl"), f.url), form, "Authorization", "", "Content-Type",
		"multipart/form-data; boundary=b")
	if sent.status != http.StatusNoContent {
		t.Fatalf("upload: %d %s", sent.status, sent.body)
	}
	made := f.call(t, "POST /runway/v1/image_to_video",
		`{"model":"gen4_turbo-manual","ratio":"1280:720","promptImage":"`+textAt(t, place, "runwayUri")+`"}`, version)
	id := textAt(t, made.json(t), "id")
	wants(t, f.control(t, "GET", "jobs/"+id, ""), map[string]any{"input_bytes": len(image)})
	for i, want := range []string{"CANCELLED", ""} {
		if got := f.call(t, "DELETE /runway/v1/tasks/"+id, "", version); got.status != http.StatusNoContent {
			t.Errorf("delete %d: %d %s", i, got.status, got.body)
		}
		got := f.call(t, "GET /runway/v1/tasks/"+id, "", version)
		if want == "" {
			if got.status != http.StatusNotFound {
				t.Errorf("deleted: %d %s", got.status, got.body)
			}
			continue
		}
		wants(t, got.json(t), map[string]any{"status": want, "cost.credits": 0})
	}
}

// TestOmniInline: where no address is asked for the video is in the interaction. Without background the create waits for it.
func TestOmniInline(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{VideoMin: 50 * time.Millisecond, VideoMax: 50 * time.Millisecond})
	made := f.do(t, "POST", "/omni/v1/interactions", `{"model":"gemini-omni-1.2-flash","input":"a cat","response_format":{"type":"video"}}`,
		"Authorization", "", "X-Goog-Api-Key", testKey)
	got := made.json(t)
	wants(t, got, map[string]any{"status": "completed", "steps.1.content.0.type": "video"})
	data, err := base64.StdEncoding.DecodeString(textAt(t, dig(got, "steps.1.content.0"), "data"))
	sum := sha256.Sum256(data)
	if want := f.control(t, "GET", "jobs/"+textAt(t, got, "id"), "")["sha256"]; err != nil || hex.EncodeToString(sum[:]) != want {
		t.Errorf("%d bytes, %v, which are not the job's", len(data), err)
	}
}

// TestVeoCloud exchanges a service account's key for a token and reads two videos out of an operation.
func TestVeoCloud(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	account := f.do(t, "GET", "/veo/service_account.json", "").json(t)
	const models = "/veo/v1/projects/p/locations/us-central1/publishers/google/models/veo-3.1-generate-001-manual"
	body := `{"instances":[{"prompt":"a cat"}],"parameters":{"sampleCount":2,"durationSeconds":8,"generateAudio":true,"seed":7}}`
	if got := f.do(t, "POST", models+":predictLongRunning", body); got.status != http.StatusUnauthorized {
		t.Errorf("with an API key: %d %s", got.status, got.body)
	}
	for name, change := range map[string]map[string]any{
		"another audience": {"aud": "https://h"}, "no scope": {"scope": ""},
		"too long": {"exp": time.Now().Add(48 * time.Hour).Unix()},
	} {
		if got := f.grant(t, account, change); got.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	token := textAt(t, f.grant(t, account, nil).json(t), "access_token")
	bearer := []string{"Authorization", "Bearer " + token}
	name := textAt(t, f.do(t, "POST", models+":predictLongRunning", body, bearer...).json(t), "name")
	ask := `{"operationName":"` + name + `"}`
	running := f.do(t, "POST", models+":fetchPredictOperation", ask, bearer...).json(t)
	if _, there := running["done"]; there {
		t.Errorf("running: %v", running)
	}
	id := name[strings.LastIndexByte(name, '/')+1:]
	f.control(t, "POST", "jobs/"+id, `{"state":"completed"}`)
	done := f.do(t, "POST", models+":fetchPredictOperation", ask, bearer...).json(t)
	videos := listAt(t, done, "response", "videos")
	first, err := base64.StdEncoding.DecodeString(textAt(t, videos[0], "bytesBase64Encoded"))
	second := textAt(t, videos[1], "bytesBase64Encoded")
	sum := sha256.Sum256(first)
	if want := f.control(t, "GET", "jobs/"+id, "")["sha256"]; err != nil || len(videos) != 2 || hex.EncodeToString(sum[:]) != want ||
		second == base64.StdEncoding.EncodeToString(first) {
		t.Errorf("%d videos, %v, which are not the job's", len(videos), err)
	}
	f.control(t, "POST", "jobs/"+id, `{"state":"failed","error":{"code":"raiMediaFiltered","message":"refused"}}`)
	wants(t, f.do(t, "POST", models+":fetchPredictOperation", ask, bearer...).json(t),
		map[string]any{"done": true, "response.raiMediaFilteredCount": 1})
	if got := f.do(t, "GET", "/veo/v1/"+name, "", bearer...); got.status != http.StatusForbidden && got.status != http.StatusNotFound {
		t.Errorf("a GET of the operation: %d", got.status)
	}
}

// grant asks for a token with a service account's assertion, whose claims may be changed.
func (f *fake) grant(t *testing.T, account, change map[string]any) answer {
	t.Helper()
	block, _ := pem.Decode([]byte(textAt(t, account, "private_key")))
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*rsa.PrivateKey)
	if err != nil || !ok {
		t.Fatalf("the account's key: %T, %v", parsed, err)
	}
	claims := map[string]any{
		"iss": account["client_email"], "aud": account["token_uri"], "scope": "https://www.googleapis.com/auth/cloud-platform",
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	maps.Copy(claims, change)
	var parts []string
	for _, part := range []any{map[string]any{"alg": "RS256", "typ": "JWT", "kid": account["private_key_id"]}, claims} {
		b, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString(b))
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, ".")))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	assertion := strings.Join(append(parts, base64.RawURLEncoding.EncodeToString(signature)), ".")
	form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}}
	return f.do(t, "POST", "/veo/token", form.Encode(), "Authorization", "", "Content-Type", "application/x-www-form-urlencoded")
}

// TestLinkLife: links live as long as their vendor documents, from the job's end where it documents that, unless a test sets another life.
func TestLinkLife(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		life    time.Duration
		vendor  string
		want    time.Duration
		renewed bool
	}{
		{0, "runway", 24 * time.Hour, true},
		{0, "luma", time.Hour, true},
		{0, "ark", 24 * time.Hour, false},
		{0, "xai", time.Hour, true},
		{time.Minute, "ark", time.Minute, false},
	} {
		t.Run(tc.vendor+" "+tc.life.String(), func(t *testing.T) {
			t.Parallel()
			f := start(t, upstream.Options{LinkLife: tc.life, VideoMin: time.Millisecond, VideoMax: time.Millisecond})
			i := slices.IndexFunc(videoVendors(), func(v videoVendor) bool { return v.name == tc.vendor })
			v := videoVendors()[i]
			made := f.call(t, v.create, v.body, v.header)
			id, _ := dig(made.json(t), v.id).(string)
			read := func() time.Time {
				var link string
				eventually(t, func() bool {
					got := f.call(t, strings.ReplaceAll(v.read, "{id}", id), v.ask, v.header)
					if len(got.body) > 0 {
						link, _ = dig(got.json(t), v.link).(string)
					}
					return link != ""
				})
				at, err := url.Parse(link)
				if err != nil {
					t.Fatal(err)
				}
				ms, err := strconv.ParseInt(at.Query().Get("expires"), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				return time.UnixMilli(ms)
			}
			first := read()
			if left := time.Until(first); left > tc.want || left < tc.want-time.Minute {
				t.Errorf("got a link of %s, want %s", left, tc.want)
			}
			if second := read(); second.After(first.Add(time.Millisecond)) && !tc.renewed {
				t.Errorf("asking again gives a link until %s, want %s", second, first)
			}
		})
	}
}
