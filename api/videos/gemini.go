package videos

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/calls"
	"modelrelay/api/edge"
	apitasks "modelrelay/api/tasks"
	"modelrelay/providers"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

type geminiStarted struct {
	Name string `json:"name" doc:"models/{model}/operations/{task id}"`
}

type geminiOperation struct {
	Name     string                   `json:"name" doc:"models/{model}/operations/{task id}"`
	Metadata geminiOperationMetadata  `json:"metadata"`
	Done     bool                     `json:"done,omitempty"`
	Error    *geminiOperationError    `json:"error,omitempty" doc:"Why a failed task failed"`
	Response *geminiOperationResponse `json:"response,omitempty"`
}

type geminiOperationMetadata struct {
	State         string `json:"state" enum:"queued,in_progress,completed,failed"`
	Progress      int    `json:"progress" minimum:"0" maximum:"100" doc:"Percent; 100 only when completed"`
	QueuePosition int    `json:"queuePosition,omitempty" minimum:"1" doc:"Position in the line at a full upstream; 1 is next"`
}

// geminiOperationError is a google.rpc.Status.
type geminiOperationError struct {
	Code    int    `json:"code" doc:"A code of google.rpc.Code"`
	Message string `json:"message" doc:"The failure's code and message"`
}

type geminiOperationResponse struct {
	Video geminiVideoResponse `json:"generateVideoResponse"`
}

type geminiVideoResponse struct {
	Samples []geminiVideoSample `json:"generatedSamples" nullable:"false" doc:"The videos, in order; none once they have expired"`
}

type geminiVideoSample struct {
	Video geminiVideoFile `json:"video"`
}

type geminiVideoFile struct {
	URI string `json:"uri" doc:"Where the file is, for the token that made it"`
}

type gemini struct {
	service *Service
	check   *body.Checker
}

// AddGemini adds the download of files. It returns the operations that start and read a task; the format routes their paths.
func (s *Service) AddGemini(g *edge.Group) (begin, read edge.PathOperation) {
	registry, tags := g.OpenAPI().Components.Schemas, []string{edge.VideoTag}
	f := gemini{service: s, check: body.NewChecker[geminiVideoBody](registry)}
	f.check.AllowSnakeCase()
	begin = edge.PathOperation{
		Operation: &huma.Operation{
			OperationID: "predictLongRunning", Method: http.MethodPost, Path: "/v1beta/models/{model}:predictLongRunning", Tags: tags,
			Summary: "Create a video task, Gemini format", Description: createWords,
			Parameters:  []*huma.Param{edge.PathParameter("model", "Model id; it may contain slashes and colons"), idempotencyParameter()},
			RequestBody: body.DeclareJSON[geminiVideoBody](registry), Responses: body.DeclareAnswer[geminiStarted](registry, "The operation"),
		},
		Access: creates(), Handle: f.begin,
	}
	read = edge.PathOperation{
		Operation: &huma.Operation{
			OperationID: "getVideoOperation", Method: http.MethodGet, Path: "/v1beta/models/{model}/operations/{operation}", Tags: tags,
			Summary: "Get a video task, Gemini format",
			Parameters: []*huma.Param{
				edge.PathParameter("model", "Model id; it may contain slashes and colons"), edge.PathParameter("operation", "Video task id"),
				apitasks.WaitParameter(),
			},
			Responses: body.DeclareAnswer[geminiOperation](registry, "The operation"),
		},
		Access: reads(), Handle: f.get,
	}
	f.addFiles(g, tags)
	return begin, read
}

// addFiles adds the download of files with both prefixes of the format: @google/genai 3.x reads below /v1.
func (f gemini) addFiles(g *edge.Group, tags []string) {
	file := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	for _, under := range [...]struct{ path, suffix string }{{filesPath, ""}, {"/v1/files/", "V1"}} {
		g.With(reads()).HandleAt(under.path+"*", huma.Operation{
			OperationID: "downloadVideoFile" + under.suffix, Method: http.MethodGet, Path: under.path + "{file}:download", Tags: tags,
			Summary: "Get the video file, Gemini format", Description: "As getVideoContent does.",
			Parameters: []*huma.Param{edge.PathParameter("file", "File id, as in an operation's uri")},
			Responses:  map[string]*huma.Response{"200": {Description: "The video", Content: map[string]*huma.MediaType{"video/*": file}}},
		}, func(x *edge.Request, r *http.Request) error {
			id, index := parseFile(fileOf(filesPath + edge.PathTail(r)))
			if id == "" {
				return noContent()
			}
			return f.service.serveOutput(x, r, id, index, "")
		})
	}
}

func (f gemini) begin(x *edge.Request, r *http.Request, model string) error {
	return f.service.creator.create(dialectOf(providers.Gemini), func(x *edge.Request, r *http.Request) (providers.VideoRequest, work, error) {
		if err := calls.CheckModel(model); err != nil {
			return providers.VideoRequest{}, work{}, err
		}
		req, source, err := f.read(x, r)
		req.Model = model
		return req, work{source, providers.ExtendVideo}, err
	}, func(_ *edge.Request, task tasks.Task) any { return geminiStarted{Name: operationName(task)} })(x, r)
}

func (f gemini) get(x *edge.Request, r *http.Request, id string) error {
	wait, err := apitasks.ParseWait([]byte(r.URL.Query().Get("wait")))
	if err != nil {
		return err
	}
	task, err := f.service.reader.Read(r.Context(), id, wait)
	if err != nil {
		return err
	}
	return x.JSON(newGeminiOperation(task, f.service.edge.Origin(r)))
}

func operationName(task tasks.Task) string {
	return "models/" + task.Request.Named() + "/operations/" + task.ID
}

func newGeminiOperation(task tasks.Task, base string) geminiOperation {
	operation := geminiOperation{
		Name: operationName(task), Done: task.Ended(),
		Metadata: geminiOperationMetadata{State: string(task.State), Progress: task.Progress, QueuePosition: task.QueuePosition},
	}
	switch task.State {
	case workflows.Failed:
		operation.Error = &geminiOperationError{rpcCode(task.Failure.Code), task.Failure.Code + ": " + task.Failure.Message}
	case workflows.Completed:
		response := geminiVideoResponse{Samples: []geminiVideoSample{}}
		if !task.Expired() {
			for index := range task.Outputs {
				response.Samples = append(response.Samples, geminiVideoSample{geminiVideoFile{fileURI(base, task.ID, index)}})
			}
		}
		operation.Response = &geminiOperationResponse{response}
	}
	return operation
}

func rpcCode(failure string) int {
	const cancelled, invalidArgument, deadlineExceeded, notFound, resourceExhausted, internal = 1, 3, 4, 5, 8, 13
	switch failure {
	case workflows.CodeCancelled:
		return cancelled
	case providers.FailedContent, providers.FailedInput:
		return invalidArgument
	case providers.FailedTimeout, workflows.CodeQueueTimeout, workflows.CodeDeadlineExceeded:
		return deadlineExceeded
	case providers.FailedForgotten:
		return notFound
	case providers.FailedQuota:
		return resourceExhausted
	default:
		return internal
	}
}

const (
	// filesPath is the path of files in the Gemini format.
	filesPath = "/v1beta/files/"
	// The id of a file is filePrefix, the rest of the task's id, and the index if it is not 0: lower-case letters and digits, as SDKs cut it.
	filePrefix, taskPrefix = "video", "video_"
	// taskLetters is the length of a task's id without the prefix.
	taskLetters = 26
)

func fileURI(base, task string, index int) string {
	return base + filesPath + fileID(task, index) + ":download?alt=media"
}

func fileID(task string, index int) string {
	id := filePrefix + strings.TrimPrefix(task, taskPrefix)
	if index > 0 {
		id += strconv.Itoa(index)
	}
	return id
}

// fileOf returns the file id in an address of this gateway, "" for others. @google/genai appends a whole http address to the path.
func fileOf(address string) string {
	const files = "/files/"
	at := strings.LastIndex(address, files)
	if at < 0 {
		return ""
	}
	file := address[at+len(files):]
	if end := strings.IndexAny(file, ":?/"); end >= 0 {
		file = file[:end]
	}
	if id, _ := parseFile(file); id == "" {
		return ""
	}
	return file
}

// parseFile splits a file's id; task is "" for other texts.
func parseFile(file string) (task string, index int) {
	rest, ok := strings.CutPrefix(file, filePrefix)
	if !ok || len(rest) < taskLetters {
		return "", 0
	}
	task = taskPrefix + rest[:taskLetters]
	index, err := strconv.Atoi(cmp.Or(rest[taskLetters:], "0"))
	if err != nil || index < 0 || !tasks.IsTaskID(task) {
		return "", 0
	}
	return task, index
}
