package openai

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/calls"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

const (
	// asyncSuffix is the suffix of the paths of image calls that are tasks. imageTasks is the path of the tasks.
	asyncSuffix = "/async"
	imageTasks  = "/v1/images/tasks"
	// imageRetry is the Retry-After, in seconds, of an unfinished task.
	imageRetry = "3"
)

// imageTask is an image call as a task. Only a read has the keys after poll_url.
type imageTask struct {
	ID        string `json:"id"`
	TaskID    string `json:"task_id" doc:"As in id"`
	Object    string `json:"object" enum:"image.generation.task"`
	Status    string `json:"status" enum:"processing,completed,failed"`
	CreatedAt int64  `json:"created_at" doc:"Unix seconds"`
	ExpiresAt int64  `json:"expires_at" doc:"When the task is removed, in Unix seconds; before the end the latest possible time"`
	PollURL   string `json:"poll_url" doc:"Path that reads the task"`

	*imageTaskEnd
}

type imageTaskEnd struct {
	CompletedAt *int64           `json:"completed_at" doc:"When it ended, in Unix seconds"`
	HTTPStatus  *int             `json:"http_status" doc:"Status of the call's answer"`
	ImageURL    *string          `json:"image_url" doc:"The first address of an image; null if the images are inline"`
	Result      *imageTaskResult `json:"result" doc:"The answer"`
	Data        json.RawMessage  `json:"data" doc:"The images, as in result"`
	Error       *imageTaskError  `json:"error" doc:"Why the task failed"`
}

type imageTaskResult struct {
	Created int64           `json:"created"`
	Data    json.RawMessage `json:"data"`
}

type imageTaskError struct {
	Type    string `json:"type"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// addAsyncImages adds the creates of image tasks, with the readers of the synchronous calls, and their read.
func (a adder) addAsyncImages(generation, edit huma.Operation, readGeneration, readEdit calls.Reader) {
	for _, create := range []struct {
		op   huma.Operation
		read calls.Reader
	}{{generation, readGeneration}, {edit, readEdit}} {
		op := create.op
		op.OperationID, op.Path, op.Method = op.OperationID+"Async", op.Path+asyncSuffix, http.MethodPost
		op.Summary += " in the background"
		op.Description = "Answers at once with a task. The task's address returns the images when they are made."
		op.Responses = map[string]*huma.Response{"202": a.imageResponse("The task")}
		a.group.With(calls.Access()).Handle(op, a.calls.Relayed(func(x *edge.Request, r *http.Request, raw []byte) (*calls.Call, error) {
			call, err := create.read(x, r, raw)
			if err != nil {
				return nil, err
			}
			if call.Stream {
				return nil, providers.InvalidField("stream", "Invalid request: an image task has no stream.")
			}
			call.Task = func(x *edge.Request, _ *http.Request, started tasks.Task, _ []byte) error {
				x.Header().Set("Location", imageTasks+"/"+started.ID)
				x.Header().Set("Retry-After", imageRetry)
				return x.JSONStatus(http.StatusAccepted, a.background.imageTask(started))
			}
			return call, nil
		}))
	}
	a.group.With(edge.Access{Meter: edge.MeterReads}).Handle(huma.Operation{
		OperationID: "getImageTask", Method: http.MethodGet, Path: imageTasks + "/{task_id}", Tags: generation.Tags, Summary: "Get an image task",
		Description: "Reads a task of an image call, in any state with the status 200.",
		Parameters:  []*huma.Param{edge.PathParameter("task_id", "Task id")},
		Responses:   map[string]*huma.Response{"200": a.imageResponse("The task as it is")},
	}, func(x *edge.Request, r *http.Request) error {
		found, err := a.background.tasks.Call(r.Context(), x.Caller.ID, r.PathValue("task_id"), func(t tasks.Task) bool {
			return strings.HasPrefix(t.Operation, http.MethodPost+" /v1/images/")
		})
		if err != nil {
			return err
		}
		x.Outcome.Model = found.Request.Model
		shown := a.background.imageTask(found)
		if shown.imageTaskEnd, err = a.background.imageEnd(r.Context(), found); err != nil {
			return err
		}
		if !found.Ended() {
			x.Header().Set("Retry-After", imageRetry)
		}
		return x.JSON(shown)
	})
}

func (a adder) imageResponse(description string) *huma.Response {
	schema := body.SchemaOf[imageTask](a.registry())
	return &huma.Response{Description: description, Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}
}

func (a background) imageTask(t tasks.Task) imageTask {
	shown := imageTask{
		ID: t.ID, TaskID: t.ID, Object: "image.generation.task", Status: "processing", CreatedAt: t.CreatedAt.Unix(),
		ExpiresAt: a.tasks.Latest(t).Unix(), PollURL: imageTasks + "/" + t.ID,
	}
	switch {
	case t.State == workflows.Completed:
		shown.Status = "completed"
	case t.Ended():
		shown.Status = "failed"
	}
	return shown
}

func (a background) imageEnd(ctx context.Context, t tasks.Task) (*imageTaskEnd, error) {
	end := new(imageTaskEnd)
	if !t.Ended() {
		return end, nil
	}
	at := t.CompletedAt.Unix()
	end.CompletedAt = &at
	if t.Call != nil && t.Call.Status > 0 {
		end.HTTPStatus = &t.Call.Status
	}
	if t.Failure != nil {
		end.Error = &imageTaskError{Type: "task_error", Code: t.Failure.Code, Message: t.Failure.Message}
	}
	if t.State != workflows.Completed {
		return end, nil
	}
	raw, err := a.tasks.Output(ctx, t, io.ReadAll)
	if err != nil {
		return nil, err
	}
	answer := rawjson.Trim(raw)
	created, _ := answer.Get("created").Int()
	data := answer.Get("data")
	if !data.IsArray() {
		data = rawjson.Value("[]")
	}
	for _, image := range data.Items() {
		if address := image.Get("url").Text().String(); address != "" {
			end.ImageURL = &address
			break
		}
	}
	end.Result, end.Data = &imageTaskResult{created, json.RawMessage(data)}, json.RawMessage(data)
	return end, nil
}
