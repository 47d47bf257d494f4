package upstream

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// routeVendorC serves the visual service of Volcengine under /vendorc/: one path, the action in the query.
// Envelope and codes: volcengine/volc-sdk-golang (commit 26924eb) and the service's public documentation.
func (s *server) routeVendorC() {
	v := &vendor{name: "vendorc", authenticate: signedKey, refuse: refuseVendorC}
	submit := &operation{v, "video.create", parseSubmitTask, s.answerSubmitTask}
	result := &operation{v, "video.get", s.parseGetResult, s.answerGetResult}
	unknown := &operation{v, "unknown", nil, func(x *exchange) {
		refuseGate(x, problem{
			status: http.StatusNotFound, code: "100008:InvalidActionOrVersion",
			message: fmt.Sprintf("Could not find operation %s for version %s.", x.r.URL.Query().Get("Action"), x.r.URL.Query().Get("Version")),
		})
	}}
	s.mux.HandleFunc("/vendorc/", func(w http.ResponseWriter, r *http.Request) {
		query, op := r.URL.Query(), unknown
		if r.Method == http.MethodPost && r.URL.Path == "/vendorc/" && query.Get("Version") == "2022-08-31" {
			switch query.Get("Action") {
			case "CVSync2AsyncSubmitTask":
				op = submit
			case "CVSync2AsyncGetResult":
				op = result
			}
		}
		s.serve(w, r, op)
	})
}

// envelope is every answer of the service itself.
type envelope struct {
	Code        int    `json:"code"`
	Data        any    `json:"data"`
	Message     string `json:"message"`
	RequestID   string `json:"request_id"`
	Status      int    `json:"status"`
	TimeElapsed string `json:"time_elapsed"`
}

const (
	codeSuccess  = 10000
	codeInvalid  = 50200
	codeRejected = 50511 // what was made is not fit to be shown; worth another try
	codeFault    = 50000 // plus the HTTP status
)

func vendorCRequestID() string {
	return time.Now().UTC().Format("20060102150405") + strings.ToUpper(randomID(18))
}

func answerVendorC(x *exchange, status, code int, message string, data any) {
	x.json(status, envelope{code, data, message, vendorCRequestID(), code, "86.473µs"})
}

// refuseVendorC answers in the envelope; a problem of the signature, whose code is a number and a word, is answered by
// the gate in front of the service.
func refuseVendorC(x *exchange, p problem) {
	if strings.Contains(p.code, ":") {
		refuseGate(x, p)
		return
	}
	code, err := strconv.Atoi(p.code)
	switch {
	case err == nil:
	case p.kind == kindInvalid && p.status == http.StatusBadRequest:
		code = codeInvalid
	default:
		code = codeFault + p.status
	}
	answerVendorC(x, p.status, code, p.message, nil)
}

// refuseGate writes {"ResponseMetadata":{…,"Error":{CodeN,Code,Message}}}.
func refuseGate(x *exchange, p problem) {
	n, code, _ := strings.Cut(p.code, ":")
	number, _ := strconv.Atoi(n) // a literal of this package
	query := x.r.URL.Query()
	x.json(p.status, map[string]any{"ResponseMetadata": map[string]any{
		"RequestId": vendorCRequestID(), "Action": query.Get("Action"), "Version": query.Get("Version"), "Service": "cv", "Region": "cn-north-1",
		"Error": map[string]any{"CodeN": number, "Code": code, "Message": p.message},
	}})
}

type submitTask struct {
	ReqKey      string   `json:"req_key"`
	Prompt      string   `json:"prompt"`
	ImageURLs   []string `json:"image_urls"`
	Images      []string `json:"binary_data_base64"`
	Seed        int      `json:"seed"`
	Frames      *int     `json:"frames"`
	AspectRatio *string  `json:"aspect_ratio"`
}

func parseSubmitTask(x *exchange) *problem {
	q := new(submitTask)
	if p := x.decode(q); p != nil {
		return p
	}
	x.request, x.model, x.prompt = q, q.ReqKey, q.Prompt
	switch {
	case q.ReqKey == "" || unknownModel(q.ReqKey):
		// A req_key the account may not use, or that does not exist, is told apart by nobody.
		return &problem{status: http.StatusUnauthorized, kind: kindInvalid, code: "50400", message: "Access Denied: Internal Error"}
	case q.Prompt == "" && len(q.Images) == 0 && len(q.ImageURLs) == 0:
		return &problem{status: http.StatusBadRequest, kind: kindInvalid, code: "50215", message: "Input invalid for this service."}
	case q.AspectRatio != nil && !slices.Contains([]string{"16:9", "4:3", "1:1", "3:4", "9:16", "21:9"}, *q.AspectRatio):
		return &problem{status: http.StatusBadRequest, kind: kindInvalid, code: "50215", message: "Input invalid for this service: aspect_ratio"}
	case q.Frames != nil && *q.Frames != 121 && *q.Frames != 241: // five seconds and ten
		return &problem{status: http.StatusBadRequest, kind: kindInvalid, code: "50215", message: "Input invalid for this service: frames"}
	}
	for _, image := range q.Images {
		if _, err := base64.StdEncoding.DecodeString(image); err != nil {
			return &problem{status: http.StatusBadRequest, kind: kindInvalid, code: "50207", message: "Image Decode Error"}
		}
	}
	return nil
}

func (s *server) answerSubmitTask(x *exchange) {
	q := requestOf[submitTask](x)
	id := 7_000_000_000_000_000_000 + rand.Uint64N(999_999_999_999_999_999) //nolint:gosec // an id, no secret
	spec := job{ID: strconv.FormatUint(id, 10), RequestSHA: digestOf(x.body)}
	if len(q.Images) > 0 {
		image, _ := base64.StdEncoding.DecodeString(q.Images[0]) // decoded before
		spec.InputSHA256, spec.InputBytes = digestOf(image), len(image)
	}
	if j := s.submit(x, spec); j != nil {
		answerVendorC(x, http.StatusOK, codeSuccess, "Success", map[string]string{"task_id": j.ID})
	}
}

type getResult struct {
	ReqKey string `json:"req_key"`
	TaskID string `json:"task_id"`
}

func (s *server) parseGetResult(x *exchange) *problem {
	q := new(getResult)
	if p := x.decode(q); p != nil {
		return p
	}
	x.request, x.model = q, q.ReqKey
	if q.TaskID == "" {
		return &problem{status: http.StatusBadRequest, kind: kindInvalid, code: "50215", message: "Input invalid for this service: task_id"}
	}
	// An unknown task is no refusal, and a task is only known under the req_key it was made with.
	if x.job = s.jobs.find("vendorc", q.TaskID); x.job != nil && x.job.Model != q.ReqKey {
		x.job = nil
	}
	if x.job != nil {
		x.prompt = x.job.Prompt
	}
	return nil
}

// taskResult is the data of a result; the lists are there and empty while nothing is done.
type taskResult struct {
	Status     string   `json:"status"`
	VideoURL   string   `json:"video_url"`
	ImageURLs  []string `json:"image_urls"`
	BinaryData []string `json:"binary_data_base64"`
	RespData   string   `json:"resp_data"`
	MetaTagged bool     `json:"aigc_meta_tagged"`
}

func (s *server) answerGetResult(x *exchange) {
	r := taskResult{Status: "not_found", ImageURLs: []string{}, BinaryData: []string{}}
	if x.job == nil {
		x.accept()
		answerVendorC(x, http.StatusOK, codeSuccess, "Success", r)
		return
	}
	s.jobs.polled(x.job.ID)
	j, err := s.look(x)
	if err != nil {
		refuseVendorC(x, problem{status: http.StatusInternalServerError, kind: kindInternal, message: err.Error()})
		return
	}
	x.accept()
	now := time.Now()
	if state, _ := j.at(now); !j.Forgotten {
		switch state {
		case stateQueued:
			r.Status = "in_queue"
		case stateRunning:
			r.Status = "generating"
		case stateCompleted:
			r.Status, r.VideoURL = "done", s.videoLink(x, j, 0)
		case stateExpired:
			r.Status = "expired"
		default:
			s.answerFailedTask(x, j.fault(now))
			return
		}
		r.Status = j.word(r.Status)
	}
	answerVendorC(x, http.StatusOK, codeSuccess, "Success", r)
}

// answerFailedTask tells of a failed job: an HTTP 400 with the failure's code.
func (s *server) answerFailedTask(x *exchange, f *fault) {
	code, err := strconv.Atoi(f.Code)
	message := f.Message
	if err != nil {
		code, message = codeRejected, "Post Img Risk Not Pass"
	}
	answerVendorC(x, http.StatusBadRequest, code, message, nil)
}
