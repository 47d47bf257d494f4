// Package fakevendorc fakes the visual service of Volcengine: one path, the action in the query. Envelope and codes:
// volcengine/volc-sdk-golang (commit 26924eb) and the service's public documentation.
//
// Below /vendorc/: ?Action=CVSync2AsyncSubmitTask|CVSync2AsyncGetResult&Version=2022-08-31.
package fakevendorc

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/jobs"
)

type api struct{ *fake.Server }

// Serve serves the API under /vendorc/.
func Serve(server *fake.Server) {
	s := &api{server}
	v := &fake.Vendor{Name: "vendorc", Authenticate: signedKey, Refuse: refuse}
	s.ServeLinks(v.Name, nil)
	submit := &fake.Operation{Vendor: v, Name: "video.create", Parse: parseSubmitTask, Answer: s.answerSubmitTask}
	result := &fake.Operation{Vendor: v, Name: "video.get", Parse: s.parseGetResult, Answer: s.answerGetResult}
	unknown := &fake.Operation{Vendor: v, Name: "unknown", Answer: func(x *fake.Exchange) {
		refuseGate(x, fake.Problem{
			Status: http.StatusNotFound, Code: "100008:InvalidActionOrVersion",
			Message: fmt.Sprintf("Could not find operation %s for version %s.", x.HTTP.URL.Query().Get("Action"), x.HTTP.URL.Query().Get("Version")),
		})
	}}
	s.Mux.HandleFunc("/vendorc/", func(w http.ResponseWriter, r *http.Request) {
		query, op := r.URL.Query(), unknown
		if r.Method == http.MethodPost && r.URL.Path == "/vendorc/" && query.Get("Version") == "2022-08-31" {
			switch query.Get("Action") {
			case "CVSync2AsyncSubmitTask":
				op = submit
			case "CVSync2AsyncGetResult":
				op = result
			}
		}
		s.Serve(w, r, op)
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

func requestID() string {
	return time.Now().UTC().Format("20060102150405") + strings.ToUpper(fake.RandomID(18))
}

func answer(x *fake.Exchange, status, code int, message string, data any) {
	x.JSON(status, envelope{code, data, message, requestID(), code, "86.473µs"})
}

// refuse answers in the envelope; a problem of the signature, whose code is a number and a word, is answered by
// the gate in front of the service.
func refuse(x *fake.Exchange, p fake.Problem) {
	if strings.Contains(p.Code, ":") {
		refuseGate(x, p)
		return
	}
	code, err := strconv.Atoi(p.Code)
	switch {
	case err == nil:
	case p.Kind == fake.Invalid && p.Status == http.StatusBadRequest:
		code = codeInvalid
	default:
		code = codeFault + p.Status
	}
	answer(x, p.Status, code, p.Message, nil)
}

// refuseGate writes {"ResponseMetadata":{…,"Error":{CodeN,Code,Message}}}.
func refuseGate(x *fake.Exchange, p fake.Problem) {
	n, code, _ := strings.Cut(p.Code, ":")
	number, _ := strconv.Atoi(n) // a literal of this package
	query := x.HTTP.URL.Query()
	x.JSON(p.Status, map[string]any{"ResponseMetadata": map[string]any{
		"RequestId": requestID(), "Action": query.Get("Action"), "Version": query.Get("Version"), "Service": "cv", "Region": "cn-north-1",
		"Error": map[string]any{"CodeN": number, "Code": code, "Message": p.Message},
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

func parseSubmitTask(x *fake.Exchange) *fake.Problem {
	q := new(submitTask)
	if p := x.Decode(q); p != nil {
		return p
	}
	x.Request, x.Model, x.Prompt = q, q.ReqKey, q.Prompt
	switch {
	case q.ReqKey == "" || fake.UnknownModel(q.ReqKey):
		// A req_key that the account may not use, and one that does not exist, get the same answer.
		return &fake.Problem{Status: http.StatusUnauthorized, Kind: fake.Invalid, Code: "50400", Message: "Access Denied: Internal Error"}
	case q.Prompt == "" && len(q.Images) == 0 && len(q.ImageURLs) == 0:
		return &fake.Problem{Status: http.StatusBadRequest, Kind: fake.Invalid, Code: "50215", Message: "Input invalid for this service."}
	case q.AspectRatio != nil && !slices.Contains([]string{"16:9", "4:3", "1:1", "3:4", "9:16", "21:9"}, *q.AspectRatio):
		return &fake.Problem{
			Status: http.StatusBadRequest, Kind: fake.Invalid, Code: "50215",
			Message: "Input invalid for this service: aspect_ratio",
		}
	case q.Frames != nil && *q.Frames != 121 && *q.Frames != 241: // five seconds and ten
		return &fake.Problem{Status: http.StatusBadRequest, Kind: fake.Invalid, Code: "50215", Message: "Input invalid for this service: frames"}
	}
	for _, image := range q.Images {
		if _, err := base64.StdEncoding.DecodeString(image); err != nil {
			return &fake.Problem{Status: http.StatusBadRequest, Kind: fake.Invalid, Code: "50207", Message: "Image Decode Error"}
		}
	}
	return nil
}

func (s *api) answerSubmitTask(x *fake.Exchange) {
	q := fake.RequestOf[submitTask](x)
	spec := jobs.Job{ID: fake.RandomNumber(19), Seconds: "5", Size: "720p"}
	if strings.HasSuffix(q.ReqKey, "_pro") || strings.Contains(q.ReqKey, "_1080") {
		spec.Size = "1080p"
	}
	if q.Frames != nil {
		const perSecond = 24
		spec.Seconds = strconv.Itoa(*q.Frames / perSecond)
	}
	if len(q.Images) > 0 {
		image, _ := base64.StdEncoding.DecodeString(q.Images[0]) // decoded before
		spec.InputSHA256, spec.InputBytes = fake.DigestOf(image), len(image)
	}
	if j := s.Submit(x, spec); j != nil {
		answer(x, http.StatusOK, codeSuccess, "Success", map[string]string{"task_id": j.ID})
	}
}

type getResult struct {
	ReqKey string `json:"req_key"`
	TaskID string `json:"task_id"`
}

func (s *api) parseGetResult(x *fake.Exchange) *fake.Problem {
	q := new(getResult)
	if p := x.Decode(q); p != nil {
		return p
	}
	x.Request, x.Model = q, q.ReqKey
	if q.TaskID == "" {
		return &fake.Problem{Status: http.StatusBadRequest, Kind: fake.Invalid, Code: "50215", Message: "Input invalid for this service: task_id"}
	}
	// An unknown task is no refusal, and a task is only known under the req_key it was made with.
	if x.Job = s.Jobs.Find("vendorc", q.TaskID); x.Job != nil && x.Job.Model != q.ReqKey {
		x.Job = nil
	}
	if x.Job != nil {
		x.Prompt = x.Job.Prompt
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

func (s *api) answerGetResult(x *fake.Exchange) {
	r := taskResult{Status: "not_found", ImageURLs: []string{}, BinaryData: []string{}}
	if x.Job == nil {
		x.Accept()
		answer(x, http.StatusOK, codeSuccess, "Success", r)
		return
	}
	s.Jobs.Polled(x.Job.ID)
	j, err := s.Look(x)
	if err != nil {
		refuse(x, fake.Problem{Status: http.StatusInternalServerError, Kind: fake.Internal, Message: err.Error()})
		return
	}
	x.Accept()
	now := time.Now()
	if state, _ := j.At(now); !j.Forgotten {
		switch state {
		case jobs.Queued:
			r.Status = "in_queue"
		case jobs.Running:
			r.Status = "generating"
		case jobs.Completed:
			r.Status, r.VideoURL = "done", s.VideoLink(x, j, 0)
		case jobs.Expired:
			r.Status = "expired"
		default:
			s.answerFailedTask(x, j.Fault(now))
			return
		}
		r.Status = j.Named(r.Status)
	}
	answer(x, http.StatusOK, codeSuccess, "Success", r)
}

// answerFailedTask answers for a failed job: an HTTP 400 with the failure's code.
func (s *api) answerFailedTask(x *fake.Exchange, f *jobs.Fault) {
	code, err := strconv.Atoi(f.Code)
	message := f.Message
	if err != nil {
		code, message = codeRejected, "Post Img Risk Not Pass"
	}
	answer(x, http.StatusBadRequest, code, message, nil)
}
