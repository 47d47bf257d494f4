package videos

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	apitasks "modelrelay/api/tasks"
	"modelrelay/providers"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// Actions and success code of Jimeng's video service. Source: volcengine/volc-sdk-golang (service/visual), public documentation.
const (
	actionSubmit   = "CVSync2AsyncSubmitTask"
	actionResult   = "CVSync2AsyncGetResult"
	vendorCSuccess = 10000
)

// The codes of a failed task: refused content, and any other failure.
const (
	vendorCContent = 50511
	vendorCOther   = 50500
)

type vendorCEnvelope[Data any] struct {
	Code        int    `json:"code" doc:"10000"`
	Message     string `json:"message" doc:"Success"`
	RequestID   string `json:"request_id"`
	Status      int    `json:"status" doc:"The code again"`
	TimeElapsed string `json:"time_elapsed" doc:"How long the answer took, as in 12.3ms"`
	Data        Data   `json:"data"`
}

type vendorCSubmitted struct {
	TaskID string `json:"task_id" doc:"Video task id"`
}

// vendorCResult is the data of a result. The fields of the vendor's other services are present and empty, as in the vendor's answers.
type vendorCResult struct {
	Status        string   `json:"status" enum:"in_queue,generating,done,not_found,expired"`
	VideoURL      string   `json:"video_url" doc:"Once done: an address of this service, which needs the token, or a link that needs none"`
	ImageURLs     []string `json:"image_urls" nullable:"false"`
	BinaryData    []string `json:"binary_data_base64" nullable:"false"`
	RespData      string   `json:"resp_data"`
	Progress      int      `json:"progress" doc:"Percent; 100 only when done"`
	QueuePosition int      `json:"queue_position,omitempty" minimum:"1" doc:"Position in the line at a full upstream; 1 is next"`
}

func newVendorCResult() vendorCResult {
	return vendorCResult{Status: "not_found", ImageURLs: []string{}, BinaryData: []string{}}
}

func newEnvelope[Data any](x *edge.Request, data Data) vendorCEnvelope[Data] {
	return vendorCEnvelope[Data]{
		Code: vendorCSuccess, Message: "Success", RequestID: x.AnswerID(), Status: vendorCSuccess,
		TimeElapsed: time.Since(x.Start).String(), Data: data,
	}
}

func (s *Service) addVendorC(g *edge.Group) {
	registry := g.OpenAPI().Components.Schemas
	v := vendorC{service: s, check: body.NewChecker[vendorCBody](registry)}
	v.submit = s.creator.create(dialectOf(providers.VendorC), v.readSubmit, func(x *edge.Request, task tasks.Task) any {
		return newEnvelope(x, vendorCSubmitted{TaskID: task.ID})
	})
	operation := huma.Operation{
		OperationID: "vendorCVideo", Method: http.MethodPost, Path: "/vendorC/", Tags: []string{edge.VideoTag},
		Summary: "Submit a video task, or get its result, Jimeng format",
		Description: "A result of a failed task is an HTTP 400 with the failure's code. The token goes into x-api-key if " +
			"Authorization contains the vendor's own signature, which is ignored. Fields of a submit that are not listed here, " +
			"including req_json, reach the vendor as its own parameters.",
		Parameters: []*huma.Param{
			{
				Name: "Action", In: "query", Required: true, Description: "Submits a task, or gets a task's result",
				Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{actionSubmit, actionResult}},
			},
			{
				Name: "Version", In: "query", Required: true, Description: "API version, a date such as 2022-08-31",
				Schema: &huma.Schema{Type: huma.TypeString, Pattern: versionPattern},
			},
			{
				Name: "wait", In: "query", Description: "For a result: seconds to wait for the next change",
				Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: new(0.0), Maximum: new(apitasks.MaxWait.Seconds())},
			},
			idempotencyParameter(),
		},
		RequestBody: body.DeclareJSON[vendorCBody](registry),
		Responses: map[string]*huma.Response{"200": {
			Description: "The submitted task's id, or a task's result",
			Content: map[string]*huma.MediaType{"application/json": {Schema: body.AnyOf(
				body.SchemaOf[vendorCEnvelope[vendorCSubmitted]](registry), body.SchemaOf[vendorCEnvelope[vendorCResult]](registry),
			)}},
		}},
	}
	for _, path := range vendorCPaths() {
		operation.Path, operation.Hidden = path, path != "/vendorC/"
		g.With(edge.Access{Permission: edge.VideoPermission}).Handle(operation, v.serve)
	}
}

type vendorC struct {
	service *Service
	check   *body.Checker
	submit  edge.Handler
}

func (v vendorC) serve(x *edge.Request, r *http.Request) error {
	query := r.URL.Query()
	if dated, _ := regexp.MatchString(versionPattern, query.Get("Version")); !dated {
		return providers.InvalidField("Version", "Invalid request: 'Version' must be a date such as 2022-08-31.")
	}
	switch query.Get("Action") {
	case actionSubmit:
		return v.submit(x, r)
	case actionResult:
		return v.getResult(x, r)
	default:
		return providers.InvalidField("Action", "Invalid request: 'Action' must be one of %s, %s.", actionSubmit, actionResult)
	}
}

// getResult returns the state of a task. As in the vendor's service, a failed task is an HTTP 400, and an unknown task has the status
// not_found.
func (v vendorC) getResult(x *edge.Request, r *http.Request) error {
	id, wait, err := v.readResult(x, r)
	if err != nil {
		return err
	}
	if err := x.TakeReads(1); err != nil {
		return err
	}
	task, err := v.service.reader.Read(r.Context(), id, wait)
	if fault := providers.AsFault(err); fault != nil {
		if fault.Kind != providers.NotFound {
			return err
		}
		return x.JSON(newEnvelope(x, newVendorCResult()))
	}
	data := newVendorCResult()
	data.Progress, data.QueuePosition = task.Progress, task.QueuePosition
	switch task.State {
	case workflows.Queued:
		data.Status = "in_queue"
	case workflows.InProgress:
		data.Status = "generating"
	case workflows.Failed:
		return x.JSONStatus(http.StatusBadRequest, vendorCError{
			Code: vendorCFailure(*task.Failure), Message: task.Failure.Message, RequestID: x.AnswerID(),
		})
	case workflows.Completed:
		if data.Status = "expired"; !task.Expired() {
			data.Status = "done"
		}
		for _, url := range v.service.addresses(r.Context(), task, v.service.edge.Origin(r)) {
			data.VideoURL = url
			break // the format has one video
		}
	}
	return x.JSON(newEnvelope(x, data))
}

// vendorCFailure returns the vendor's code of a failure. For a task that failed there, it is the vendor's own code, the prefix of the
// message.
func vendorCFailure(failure providers.VideoFailure) int {
	own, _, _ := strings.Cut(failure.Message, ":")
	for _, code := range [...]string{failure.Code, own} {
		if n, err := strconv.Atoi(code); err == nil && n > 50000 && n < 60000 {
			return n
		}
	}
	code := failure.Code
	for _, word := range [...]string{"moderation", "content_policy", "content_filter", "policy_violation", "safety", "sensitive"} {
		if strings.Contains(strings.ToLower(code), word) {
			return vendorCContent
		}
	}
	return vendorCOther
}

// VendorCFormat returns the Jimeng format.
func VendorCFormat() *edge.Format {
	return &edge.Format{
		Name: providers.VendorC, Title: "VendorC",
		Speaks: func(r *http.Request) bool {
			paths := vendorCPaths()
			return slices.Contains(paths[:], r.URL.Path)
		},
		Fault: func(fault *providers.Fault, status int, requestID string) any {
			code := 50000 + status
			if fault.Kind == providers.Invalid {
				code = 50200
			}
			return vendorCError{Code: code, Message: fault.Message, RequestID: requestID}
		},
		FaultSchema: body.SchemaOf[vendorCError],
	}
}

// vendorCPaths returns the paths of the format: those of the contract, and those of the vendor's service.
func vendorCPaths() [4]string { return [...]string{"/vendorC/", "/vendorC", "/jimeng/", "/jimeng"} }

type vendorCError struct {
	Code      int     `json:"code" doc:"50200 for a bad request, a failed task's own code, else 50000 plus the HTTP status"`
	Message   string  `json:"message"`
	Data      nothing `json:"data"`
	RequestID string  `json:"request_id"`
}

type nothing struct{}

// MarshalJSON implements json.Marshaler.
func (nothing) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// Schema implements huma.SchemaProvider.
func (nothing) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: "null"} }
