package vendorc_test

import (
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
	"time"
	"unicode/utf8"

	"modelrelay/providers"
	"modelrelay/providers/providertest"
	"modelrelay/providers/upstream"
	"modelrelay/providers/vendorc"
)

func TestVideo(t *testing.T) {
	t.Parallel()
	providertest.TestVideo(t, providertest.VideoSubject{
		New:        func(client *http.Client) providers.VideoAdapter { return vendorc.NewVideos(client) },
		Channel:    providers.Channel{Vendor: "vendorc"},
		Key:        "AKLTsuite:%s",
		Answers:    os.DirFS("testdata/video"),
		Step:       step,
		Authorized: authorized,
		Job:        "7392616336519610409",
		Failure:    providers.VideoFailure{Code: providers.FailedContent, Message: "50511: Post Img Risk Not Pass"},
		Upload:     upload, VideoTraits: providertest.VideoTraits{BareUploads: true},
	})
}

func step(req *http.Request) providertest.VideoStep {
	query := req.URL.Query()
	action := query.Get("Action")
	switch {
	case req.Method != http.MethodPost || req.URL.Path != "/" || query.Get("Version") != "2022-08-31":
		return ""
	case action == "CVSync2AsyncSubmitTask":
		return providertest.VideoSubmit
	case action == "CVSync2AsyncGetResult":
		var body struct {
			ReqKey string `json:"req_key"`
			TaskID string `json:"task_id"`
		}
		if json.NewDecoder(req.Body).Decode(&body) == nil && body.ReqKey == "up" && body.TaskID == "7392616336519610409" {
			return providertest.VideoPoll
		}
	}
	return ""
}

// authorized signs the request once more, at its own date. That the signature is the vendor's is TestSign's matter.
func authorized(req *http.Request, key providers.Secret) bool {
	given := req.Header.Get("Authorization")
	if req.Method == http.MethodGet {
		return given == "" // links need no key
	}
	at, err := time.Parse("20060102T150405Z", req.Header.Get("X-Date"))
	if err != nil || time.Since(at).Abs() > time.Minute {
		return false
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return false
	}
	again, err := http.NewRequestWithContext(req.Context(), req.Method, "http://"+req.Host+req.URL.RequestURI(), http.NoBody)
	if err != nil {
		return false
	}
	again.Header.Set("Content-Type", req.Header.Get("Content-Type"))
	vendorc.Sign(again, body, key, at)
	return given != "" && given == again.Header.Get("Authorization")
}

func upload(req *http.Request) (providertest.Upload, error) {
	var body struct {
		Data []string `json:"binary_data_base64"`
	}
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil || len(body.Data) != 1 {
		return providertest.Upload{}, fmt.Errorf("got %d images, %w", len(body.Data), err)
	}
	data, err := base64.StdEncoding.DecodeString(body.Data[0])
	return providertest.Upload{Data: data}, err
}

func target(base string) providers.Target {
	return providers.Target{Channel: providers.Channel{Name: "main", BaseURL: base}, Key: "access-1:secret-1", Model: "jimeng_t2v_v30"}
}

func newVideos(t *testing.T) *vendorc.Videos {
	t.Helper()
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	return vendorc.NewVideos(client)
}

// answering is an upstream that gives one answer to everything.
func answering(t *testing.T, status int, body string) providers.Target {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return target(server.URL)
}

func code(n int, message string) string {
	return fmt.Sprintf(`{"code":%d,"data":null,"message":%q,"request_id":"r","status":%d}`, n, message, n)
}

func gate(word, message string) string {
	return fmt.Sprintf(`{"ResponseMetadata":{"RequestId":"r","Error":{"CodeN":1,"Code":%q,"Message":%q}}}`, word, message)
}

// TestVideoRefusals: the meaning of each documented code for a submit.
func TestVideoRefusals(t *testing.T) {
	t.Parallel()
	const (
		said     = "The upstream refused the request: "
		keyWords = "The upstream refused the gateway's own key."
	)
	type want struct {
		kind      providers.Kind
		accepted  providers.Accepted
		blame     providers.Blame
		key       providers.KeyFault
		retryable bool
		code      string
		message   string
	}
	refused := func(code, words string) want {
		return want{kind: providers.Invalid, accepted: providers.NotAccepted, code: code, message: said + words}
	}
	limited := func(code string) want {
		return want{
			providers.RateLimited, providers.NotAccepted, providers.BlameKey, providers.KeyBusy, true, code,
			"The upstream limits the rate of requests.",
		}
	}
	badKey := func(code string) want {
		return want{providers.Upstream, providers.NotAccepted, providers.BlameKey, providers.KeyRefused, true, code, keyWords}
	}
	forbidden := func(code string) want {
		return want{providers.Upstream, providers.NotAccepted, providers.BlameKey, providers.KeyForbidden, true, code, keyWords}
	}
	unknown := func(code, words string) want {
		return want{providers.Upstream, providers.AcceptedUnknown, providers.BlameChannel, providers.KeyBusy, true, code, words}
	}
	for _, tc := range []struct {
		name   string
		status int
		body   string
		want   want
	}{
		{"input image", 400, code(50411, "Pre Img Risk Not Pass"), refused("50411", "Pre Img Risk Not Pass")},
		{"text", 400, code(50412, "Text Risk Not Pass"), refused("50412", "Text Risk Not Pass")},
		{"words", 400, code(50413, "Post Text Risk Not Pass"), refused("50413", "Post Text Risk Not Pass")},
		{"copyright", 400, code(50518, "Pre Img Risk Not Pass: Copyright"), refused("50518", "Pre Img Risk Not Pass: Copyright")},
		{"review broken", 400, code(50520, "Risk Internal Error"), refused("50520", "Risk Internal Error")},
		{"input", 400, code(50215, "Input invalid for this service."), refused("50215", "Input invalid for this service.")},
		{"no words", 400, code(50215, ""), want{
			kind: providers.Invalid, accepted: providers.NotAccepted, code: "50215",
			message: "The upstream refused the request.",
		}},
		{"the key in its words", 400, code(50215, "bad access-1 or secret-1"), refused("50215", "bad *** or ***")},
		{
			"the client's link in its words", 400, code(50207, "cannot fetch https://h/a.png?sig=hush"),
			refused("50207", "cannot fetch https://h/a.png?…"),
		},
		{"refused in a 200", 200, code(50412, "Text Risk Not Pass"), refused("50412", "Text Risk Not Pass")},
		{"rate", 429, code(50429, "Request Has Reached API Limit, Please Try Later"), limited("50429")},
		{"concurrency", 429, code(50430, "x"), limited("50430")},
		{"concurrency in a 400", 400, code(50430, "x"), limited("50430")},
		{"concurrency in a 200", 200, code(50430, "x"), limited("50430")},
		{"not opened", 401, code(50400, "Access Denied: Internal Error"), forbidden("50400")},
		{"not opened, in a 400", 400, code(50400, "Access Denied: Internal Error"), forbidden("50400")},
		{"internal", 500, code(50500, "Internal Error"), unknown("50500", "The upstream answered with status 500.")},
		{"RPC", 500, code(50501, "Internal RPC Error"), unknown("50501", "The upstream answered with status 500.")},
		{"internal in a 400", 400, code(50500, "Internal Error"), unknown("50500", "The upstream answered with status 500.")},
		{"internal in a 200", 200, code(50501, "x"), unknown("50501", "The upstream answered with status 500.")},
		{"no code of the service in a 200", 200, code(60001, "x"), unknown("60001", "The upstream answered with status 500.")},
		{"another server's document", 200, `{"data":{"task_id":"1"}}`, unknown("", "The upstream answered with status 500.")},
		{"gateway timeout", 504, "<html>", unknown("", "The upstream answered with status 504.")},
		{"success without a task", 200, `{"code":10000,"data":null,"message":"Success"}`, unknown("", "The upstream's answer is broken.")},
		{
			"success with an empty task", 200, `{"code":10000,"data":{"task_id":""},"message":"Success"}`,
			unknown("", "The upstream's answer is broken."),
		},
		{"signature", 401, gate("SignatureDoesNotMatch", "hush"), badKey("SignatureDoesNotMatch")},
		{"clock", 400, gate("InvalidTimestamp", "hush"), badKey("InvalidTimestamp")},
		{"credential", 400, gate("InvalidCredential", "hush"), badKey("InvalidCredential")},
		{"rights", 403, gate("AccessDenied", "hush"), forbidden("AccessDenied")},
		{"flow", 429, gate("FlowLimitExceeded", "x"), limited("FlowLimitExceeded")},
		{
			"gate down", 503, gate("ServiceUnavailableTemp", "x"),
			want{
				providers.Overloaded, providers.AcceptedUnknown, providers.BlameChannel, providers.KeyBusy, true, "ServiceUnavailableTemp",
				"The upstream is overloaded.",
			},
		},
		{
			"another service", 404, gate("InvalidActionOrVersion", "x"),
			want{
				providers.Upstream, providers.NotAccepted, providers.BlameChannel, providers.KeyBusy, true, "InvalidActionOrVersion",
				"The channel's address is not this vendor's.",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := newVideos(t).Submit(t.Context(), answering(t, tc.status, tc.body), providers.VideoRequest{Prompt: "a"})
			var fault *providers.Fault
			if !errors.As(err, &fault) {
				t.Fatalf("got %v", err)
			}
			got := want{fault.Kind, fault.Accepted, fault.Blame, fault.Key, fault.Retryable(), fault.Code, fault.Message}
			if got != tc.want {
				t.Errorf("got %+v\nwant %+v", got, tc.want)
			}
			if strings.Contains(fault.Error(), "hush") || strings.Contains(fault.Error(), "secret-1") {
				t.Errorf("the fault %q has internal details", fault.Error())
			}
		})
	}
}

// TestVideoFailures: which answers to a look mean that the job failed, and which that the look did.
func TestVideoFailures(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		status  int
		body    string
		failure providers.VideoFailure // zero: a fault
		kind    providers.Kind
	}{
		{
			name: "what was made", status: 400, body: code(50516, "Post Video Risk Not Pass"),
			failure: providers.VideoFailure{Code: providers.FailedContent, Message: "50516: Post Video Risk Not Pass"},
		},
		{
			name: "input found bad later", status: 400, body: code(50215, "Input invalid for this service."),
			failure: providers.VideoFailure{Code: providers.FailedInput, Message: "50215: Input invalid for this service."},
		},
		{
			name: "in a 200", status: 200, body: code(50511, "Post Img Risk Not Pass"),
			failure: providers.VideoFailure{Code: providers.FailedContent, Message: "50511: Post Img Risk Not Pass"},
		},
		{
			name: "without words", status: 400, body: code(50511, ""),
			failure: providers.VideoFailure{Code: providers.FailedContent, Message: "The upstream's job ended as \"50511\"."},
		},
		{
			name: "internal, in a 400", status: 400, body: code(50500, "Internal Error"),
			failure: providers.VideoFailure{Code: providers.FailedVendor, Message: "50500: Internal Error"},
		},
		{name: "internal", status: 500, body: code(50500, "Internal Error"), kind: providers.Upstream},
		{name: "rate", status: 429, body: code(50429, "x"), kind: providers.RateLimited},
		{name: "rate in a 400", status: 400, body: code(50429, "x"), kind: providers.RateLimited},
		{name: "not opened any more", status: 401, body: code(50400, "x"), kind: providers.Upstream},
		{name: "unreadable", status: 400, body: code(50200, "x"), kind: providers.Invalid},
		{name: "signature", status: 401, body: gate("SignatureDoesNotMatch", "x"), kind: providers.Upstream},
		{name: "a foreign 400", status: 400, body: `{"error":"x"}`, kind: providers.Invalid},
		{name: "a foreign 200", status: 200, body: `{"data":{"status":"done","video_url":"https://h/"}}`, kind: providers.Upstream},
		{name: "a foreign 404", status: 404, body: `not found`, kind: providers.NotFound},
		{
			name: "done without a link", status: 200, body: `{"code":10000,"data":{"status":"done","video_url":""},"message":"Success"}`,
			kind: providers.Upstream,
		},
		{
			name: "expired", status: 200, body: `{"code":10000,"data":{"status":"expired"},"message":"Success"}`,
			failure: providers.VideoFailure{Code: "upstream_expired", Message: "The upstream's job expired."},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			status, err := newVideos(t).Poll(t.Context(), answering(t, tc.status, tc.body), providers.Ticket{Job: "1"})
			if tc.failure != (providers.VideoFailure{}) {
				if err != nil || status.State != providers.JobFailed || status.Failure == nil || *status.Failure != tc.failure {
					t.Errorf("got %+v (%+v), %v", status, status.Failure, err)
				}
				return
			}
			var fault *providers.Fault
			if !errors.As(err, &fault) || fault.Kind != tc.kind {
				t.Errorf("got %+v, %v, want %s", status, err, tc.kind)
			}
		})
	}
}

// TestCheckOfAnotherServer: a document without the vendor's code does not show that the address is the vendor's.
func TestCheckOfAnotherServer(t *testing.T) {
	t.Parallel()
	if _, err := newVideos(t).Check(t.Context(), answering(t, 200, `{"data":{}}`), nil); err == nil {
		t.Error("another server passes the check")
	}
}

// TestVideoGone: a link that no longer comes is no video, and the other links of a result count where video_url is empty.
func TestVideoGone(t *testing.T) {
	t.Parallel()
	_, err := newVideos(t).Open(t.Context(), answering(t, 200, `{"code":10000,"data":{"status":"not_found"},"message":"Success"}`),
		providers.Ticket{Job: "1"}, 0)
	var fault *providers.Fault
	if !errors.As(err, &fault) || fault.Kind != providers.NotFound {
		t.Errorf("got %v", err)
	}
	_, link, err := vendorc.DecodeResult([]byte(`{"code":10000,"data":{"status":"done","video_url":"","resp_data":"{\"urls\":[\"https://a/1.mp4\"]}"}}`))
	if err != nil || link != "https://a/1.mp4" {
		t.Errorf("got link %q, %v", link, err)
	}
}

// FuzzResult: any answer of an upstream becomes an error, or a status that a history may contain and a client may see.
func FuzzResult(f *testing.F) {
	providertest.AddVideoAnswers(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		status, link, err := vendorc.DecodeResult(body)
		if err != nil {
			if fault, ok := errors.AsType[*providers.Fault](err); !ok || fault.Message == "" || fault.Kind == "" {
				t.Fatalf("got %v", err)
			}
			return
		}
		switch status.State {
		case providers.JobQueued, providers.JobRunning:
		case providers.JobDone:
			if status.Outputs != 1 || link == "" {
				t.Errorf("got %+v, link %q", status, link)
			}
		case providers.JobFailed, providers.JobForgotten:
			if f := status.Failure; f == nil || f.Code == "" || f.Message == "" || len(f.Code+f.Message) > 1000 ||
				!utf8.ValidString(f.Code+f.Message) {
				t.Errorf("got failure %+v", f)
			}
		default:
			t.Errorf("got state %q", status.State)
		}
		if len(status.VendorState) > 200 || !utf8.ValidString(status.VendorState) || status.Progress != -1 {
			t.Errorf("got %+v", status)
		}
	})
}
