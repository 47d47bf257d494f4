package api_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"modelrelay/activities"
	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/storage/limits"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

const (
	submitPath = "/vendorC/?Action=CVSync2AsyncSubmitTask&Version=2022-08-31"
	resultPath = "/vendorC/?Action=CVSync2AsyncGetResult&Version=2022-08-31"
)

// vendorCAnswer is every answer of vendor C.
type vendorCAnswer struct {
	Code        int
	Message     string
	RequestID   string `json:"request_id"`
	Status      int
	TimeElapsed string `json:"time_elapsed"`
	Data        map[string]any
}

// vendorCOK reads a good answer in the vendor's envelope.
func vendorCOK(t *testing.T, rec *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	var keys map[string]any
	decode(t, rec.Body.Bytes(), &keys)
	var answer vendorCAnswer
	decode(t, rec.Body.Bytes(), &answer)
	elapsed, err := time.ParseDuration(answer.TimeElapsed)
	if rec.Code != 200 || answer.Code != 10000 || answer.Message != "Success" || answer.Status != 10000 || answer.Data == nil ||
		len(keys) != 6 ||
		answer.RequestID != rec.Header().Get("X-Request-Id") || err != nil || elapsed <= 0 {
		t.Fatalf("got %d %s", rec.Code, rec.Body)
	}
	return answer.Data
}

// vendorCFault reads a fault in the vendor's shape.
func vendorCFault(t *testing.T, rec *httptest.ResponseRecorder) (code int, message string) {
	t.Helper()
	var keys map[string]any
	decode(t, rec.Body.Bytes(), &keys)
	if data, there := keys["data"]; !there || data != nil || len(keys) != 4 || keys["request_id"] != rec.Header().Get("X-Request-Id") {
		t.Errorf("got %s, want code, message, data null and request_id", rec.Body)
	}
	var answer vendorCAnswer
	decode(t, rec.Body.Bytes(), &answer)
	return answer.Code, answer.Message
}

func TestVendorCSubmit(t *testing.T) {
	t.Parallel()
	bare := base64.StdEncoding.EncodeToString([]byte(png))
	upload := providers.Media{ContentType: "image/png", Size: int64(len(png)), Data: []byte(png)}
	seed := int64(-1)
	for _, test := range []struct {
		name, body string
		want       providers.VideoRequest
	}{
		{
			"everything", `{"req_key":"jimeng_t2v","prompt":"p","seed":-1,"frames":121,"aspect_ratio":"16:9","req_json":"{}","webhook_url":"https://example.com/h"}`,
			providers.VideoRequest{
				Model: "jimeng_t2v", Prompt: "p", Seed: &seed, WebhookURL: "https://example.com/h", Seconds: "5",
				AspectRatio: "16:9", Extra: json.RawMessage(`{"req_json":"{}"}`),
			},
		},
		{"a req_key alone", `{"req_key":"jimeng_t2v"}`, providers.VideoRequest{Model: "jimeng_t2v"}},
		{"a model", `{"req_key":"jimeng_t2v","model":"sora-2","prompt":"p"}`, providers.VideoRequest{Model: "sora-2", Prompt: "p"}},
		{"the default model", `{"prompt":"p","req_key":null}`, providers.VideoRequest{Model: "sora-2", Prompt: "p"}},
		{
			"images", `{"req_key":"jimeng_t2v","binary_data_base64":["` + bare + `", "data:image/jpeg;base64,` + bare +
				`"],"image_urls":["http://example.com/a"]}`,
			providers.VideoRequest{Model: "jimeng_t2v", Inputs: []providers.Media{upload, upload, {URL: "http://example.com/a"}}},
		},
		{"no images", `{"req_key":"jimeng_t2v","binary_data_base64":[],"image_urls":[]}`, providers.VideoRequest{Model: "jimeng_t2v"}},
	} {
		for _, path := range []string{"/vendorC/", "/vendorC", "/jimeng/", "/jimeng"} {
			t.Run(test.name+" at "+path, func(t *testing.T) {
				t.Parallel()
				g := newGateway(t, nil, anyVideoModel)
				rec := g.do(t, request("POST", strings.Replace(submitPath, "/vendorC/", path, 1), test.body))
				if data := vendorCOK(t, rec); data["task_id"] != "video_1" || len(data) != 1 {
					t.Errorf("got %s", rec.Body)
				}
				got := g.tasks.creates[0]
				if !reflect.DeepEqual(got.Request, test.want) || got.Format != providers.VendorC || got.TokenID != "good" {
					t.Errorf("got %+v, want %+v", got.Request, test.want)
				}
			})
		}
	}
}

// anyVideoModel is a gateway with one channel that makes videos with every model.
func anyVideoModel(_ *gateway, o *api.Options) {
	o.Router = router.New(
		providers.Catalog{"vendorc": {Name: "vendorc", Video: struct{ providers.VideoAdapter }{}}},
		[]providers.Channel{{
			Name: "any", Vendor: "vendorc", BaseURL: "http://upstream.invalid", Keys: []providers.Secret{"a:b"},
			Models: map[string]string{providers.AnyModel: ""}, Groups: []string{"default"},
		}}, nil)
	o.DefaultVideoModel = "sora-2"
}

// TestVendorCCredentials: the client's own signature is in Authorization, so its token comes elsewhere.
func TestVendorCCredentials(t *testing.T) {
	t.Parallel()
	const signed = "HMAC-SHA256 Credential=AK/20260131/cn-north-1/cv/request, SignedHeaders=host;x-date, Signature=00ff"
	g := newGateway(t, nil, anyVideoModel)
	const body = `{"req_key":"jimeng_t2v","prompt":"p"}`
	vendorCOK(t, g.do(t, request("POST", submitPath, body, "Authorization", signed, "X-Api-Key", goodKey)))
	vendorCOK(t, g.do(t, request("POST", submitPath, body)))
	vendorCOK(t, g.do(t, request("POST", submitPath+"&key="+goodKey, body, "Authorization", signed)))
	for name, headers := range map[string][]string{
		"none":             {"Authorization", ""},
		"signature alone":  {"Authorization", signed},
		"a wrong token":    {"Authorization", signed, "X-Api-Key", "sk-none"},
		"a disabled token": {"Authorization", signed, "X-Api-Key", "sk-off"},
	} {
		rec := g.do(t, request("POST", submitPath, body, headers...))
		if code, _ := vendorCFault(t, rec); rec.Code != 401 || code != 50401 {
			t.Errorf("%s: got %d %s", name, rec.Code, rec.Body)
		}
	}
}

func TestVendorCFaults(t *testing.T) {
	t.Parallel()
	image := func(raw string) string {
		return `{"req_key":"jimeng_t2v","binary_data_base64":["` + base64.StdEncoding.EncodeToString([]byte(png)) + `","` + raw + `"]}`
	}
	const good = `{"req_key":"jimeng_t2v","prompt":"p"}`
	for _, test := range []struct {
		name, path, body string
		status, code     int
		names            string
	}{
		{"no action", "/vendorC/?Version=2022-08-31", good, 400, 50200, "'Action'"},
		{"an unknown action", "/vendorC/?Action=CVProcess&Version=2022-08-31", good, 400, 50200, "'Action'"},
		{"no version", "/vendorC/?Action=CVSync2AsyncSubmitTask", good, 400, 50200, "'Version'"},
		{"a version that is no date", "/vendorC/?Action=CVSync2AsyncSubmitTask&Version=2", good, 400, 50200, "'Version'"},
		{"bad JSON", submitPath, `{`, 400, 50200, "JSON"},
		{"no JSON", submitPath, "", 400, 50200, "JSON"},
		{"a list", submitPath, `[]`, 400, 50200, "object"},
		{"req_key is a number", submitPath, `{"req_key":1}`, 400, 50200, "'req_key'"},
		{"nothing said", submitPath, `{"model":"m"}`, 400, 50200, "'prompt'"},
		{"images are a string", submitPath, `{"req_key":"jimeng_t2v","binary_data_base64":"x"}`, 400, 50200, "'binary_data_base64'"},
		{"an image is a number", submitPath, `{"req_key":"jimeng_t2v","binary_data_base64":[1]}`, 400, 50200, "'binary_data_base64[0]'"},
		{"no image", submitPath, image("aGVsbG8="), 400, 50200, "'binary_data_base64[1]'"},
		{"an empty image", submitPath, image(""), 400, 50200, "'binary_data_base64[1]'"},
		{"bytes in place of a URL", submitPath, `{"req_key":"jimeng_t2v","image_urls":["` + base64.StdEncoding.EncodeToString([]byte(png)) +
			`"]}`, 400, 50200, "'image_urls[0]'"},
		{
			"too many", submitPath, `{"req_key":"jimeng_t2v","image_urls":["http://a/b"` + strings.Repeat(`,"http://a/b"`, 64) + `]}`, 400, 50200,
			"'image_urls[64]'",
		},
		{"an unknown model", submitPath, `{"req_key":"none","prompt":"p"}`, 404, 50404, "none"},
		{"a result of nothing", resultPath, `{"req_key":"jimeng_t2v"}`, 400, 50200, "'task_id'"},
		{"a result of a number", resultPath, `{"task_id":7}`, 400, 50200, "'task_id'"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, nil, func(g *gateway, o *api.Options) {
				if test.status != 404 {
					anyVideoModel(g, o)
				}
			})
			rec := g.do(t, request("POST", test.path, test.body))
			code, message := vendorCFault(t, rec)
			if rec.Code != test.status || code != test.code || !strings.Contains(message, test.names) {
				t.Errorf("got %d %s, want %d, %d and %s", rec.Code, rec.Body, test.status, test.code, test.names)
			}
			if len(g.tasks.creates) != 0 {
				t.Error("a task was made")
			}
		})
	}
	g := newGateway(t, nil, nil)
	rec := g.do(t, request("GET", submitPath, ""))
	if code, _ := vendorCFault(t, rec); rec.Code != 405 || code != 50405 || rec.Header().Get("Allow") != "POST" {
		t.Errorf("GET: got %d %s, Allow %q", rec.Code, rec.Body, rec.Header().Get("Allow"))
	}
	g.tasks.err = &providers.Fault{Kind: providers.Overloaded, Message: "m", RetryAfter: time.Second}
	rec = g.do(t, request("POST", submitPath, `{"req_key":"sora-2","prompt":"p"}`))
	if code, _ := vendorCFault(t, rec); rec.Code != 503 || code != 50503 || rec.Header().Get("Retry-After") != "1" {
		t.Errorf("away: got %d %s", rec.Code, rec.Body)
	}
}

// TestVendorCLimits: submits count, looks do not.
func TestVendorCLimits(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, anyVideoModel)
	g.limits.grant = limits.Grant{Requests: limits.Window{Limit: 5}, RetryAfter: 3 * time.Second}
	rec := g.do(t, request("POST", submitPath, `{"req_key":"jimeng_t2v","prompt":"p"}`))
	if code, _ := vendorCFault(t, rec); rec.Code != 429 || code != 50429 || rec.Header().Get("Retry-After") != "3" {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
	vendorCOK(t, g.do(t, request("POST", resultPath, `{"task_id":"video_1"}`)))
	if len(g.limits.costs) != 1 {
		t.Errorf("got %d calls counted, want 1", len(g.limits.costs))
	}
}

func TestVendorCResult(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, func(g *gateway, o *api.Options) {
		anyVideoModel(g, o)
		o.Proxies = proxiesOf("192.0.2.1/32") // where the requests of tests come from
	})
	later := time.Now().Add(time.Hour)
	for want, change := range map[string]func(*tasks.Task){
		`{"status":"in_queue","video_url":"","image_urls":[],"binary_data_base64":[],"resp_data":"","progress":0}`:                    func(*tasks.Task) {},
		`{"status":"in_queue","video_url":"","image_urls":[],"binary_data_base64":[],"resp_data":"","progress":0,"queue_position":2}`: func(task *tasks.Task) { task.QueuePosition = 2 },
		`{"status":"generating","video_url":"","image_urls":[],"binary_data_base64":[],"resp_data":"","progress":40}`: func(task *tasks.Task) {
			task.State, task.Progress = workflows.InProgress, 40
		},
		`{"status":"done","video_url":"https://videos.example.com/v1/videos/video_1/content","image_urls":[],"binary_data_base64":[],"resp_data":"","progress":100}`: func(task *tasks.Task) {
			task.State, task.Progress, task.ExpiresAt, task.Outputs = workflows.Completed, 100, later,
				[]activities.Output{{Object: "a"}, {Object: "b"}}
		},
		`{"status":"expired","video_url":"","image_urls":[],"binary_data_base64":[],"resp_data":"","progress":100}`: func(task *tasks.Task) {
			task.State, task.Progress, task.ExpiresAt, task.Outputs = workflows.Completed, 100, day, []activities.Output{{Object: "a"}}
		},
		`{"status":"not_found","video_url":"","image_urls":[],"binary_data_base64":[],"resp_data":"","progress":0}`: func(task *tasks.Task) { task.Token = "other" },
	} {
		task := tasks.Task{ID: "video_1", Token: "good", State: workflows.Queued, CreatedAt: day}
		change(&task)
		g.tasks.put(task)
		req := request("POST", resultPath, `{"req_key":"jimeng_t2v","task_id":"video_1","req_json":"{\"return_url\":true}"}`, "X-Forwarded-Proto",
			"https")
		req.Host = "videos.example.com"
		rec := g.do(t, req)
		vendorCOK(t, rec)
		var answer struct{ Data json.RawMessage }
		decode(t, rec.Body.Bytes(), &answer)
		if got := string(answer.Data); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if data := vendorCOK(t, g.do(t, request("POST", resultPath, `{"task_id":"7368..strange id"}`))); data["status"] != "not_found" {
		t.Errorf("a strange id: got %v", data)
	}
}

// TestVendorCFailure: the result of a failed task is an HTTP 400 with a failure's code.
func TestVendorCFailure(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, anyVideoModel)
	for failure, want := range map[string]int{
		"50412": 50412, "50511": 50511, "99999": 50500, "moderation_blocked": 50511, "content_policy_violation": 50511,
		"cancelled": 50500, "deadline_exceeded": 50500, "": 50500,
	} {
		g.tasks.put(tasks.Task{
			ID: "video_1", Token: "good", State: workflows.Failed, CreatedAt: day,
			Ending: workflows.Ending{Failure: &providers.VideoFailure{Code: failure, Message: "That did not work."}},
		})
		rec := g.do(t, request("POST", resultPath, `{"task_id":"video_1"}`))
		code, message := vendorCFault(t, rec)
		if rec.Code != http.StatusBadRequest || code != want || message != "That did not work." {
			t.Errorf("%s: got %d %s, want 400 and %d", failure, rec.Code, rec.Body, want)
		}
	}
	g.tasks.put(tasks.Task{
		ID: "video_1", Token: "good", State: workflows.Failed, CreatedAt: day,
		Ending: workflows.Ending{Failure: &providers.VideoFailure{Code: providers.FailedContent, Message: "50412: Text Risk Not Pass"}},
	})
	if code, message := vendorCFault(t, g.do(t, request("POST", resultPath, `{"task_id":"video_1"}`))); code != 50412 ||
		message != "50412: Text Risk Not Pass" {
		t.Errorf("a failure there: got %d %q", code, message)
	}
}

// FuzzVideoBodies sends arbitrary JSON to the creates that take no form: it is refused or makes a request that can be
// written down.
func FuzzVideoBodies(f *testing.F) {
	for _, path := range []string{generations, submitPath, resultPath, "/v1/videos"} {
		f.Add(path, []byte(`{"model":"m","req_key":"k","prompt":"p","image":"https://a/b","duration":1e1,"n":1,"seed":-1,"binary_data_base64":["aGk"],"x":{"y":[1]}}`))
	}
	g := newGateway(f, nil, anyVideoModel)
	f.Fuzz(func(t *testing.T, path string, raw []byte) {
		if path != generations && path != resultPath && path != "/v1/videos" {
			path = submitPath
		}
		g.tasks.creates = nil
		rec := g.do(t, request("POST", path, string(raw)))
		if rec.Code >= 500 {
			t.Errorf("got %d %s", rec.Code, rec.Body)
		}
		for _, create := range g.tasks.creates {
			if _, err := json.Marshal(create.Request); err != nil {
				t.Errorf("%s made %+v: %v", raw, create.Request, err)
			}
		}
	})
}
