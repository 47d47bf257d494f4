package tasks

import (
	"cmp"
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/activities"
	"modelrelay/api/body"
	"modelrelay/providers"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// task is the JSON of a task of any kind. All keys are always present.
type task struct {
	ID            string          `json:"id"`
	Object        string          `json:"object" enum:"task"`
	Kind          string          `json:"kind" enum:"call,video" doc:"Kind of task"`
	Operation     *string         `json:"operation" doc:"Method and path of the create"`
	Model         string          `json:"model"`
	Status        string          `json:"status" enum:"queued,in_progress,completed,failed,cancelled"`
	Stage         *string         `json:"stage" doc:"Of a running call: waiting, sending, answering or storing"`
	QueuePosition *int            `json:"queue_position" doc:"Position of a queued task in the line at a full upstream or worker; 1 is next; null if it is not known"`
	Attempts      int             `json:"attempts" doc:"Requests to upstreams that have begun"`
	CreatedAt     int64           `json:"created_at" doc:"Unix seconds"`
	StartedAt     *int64          `json:"started_at" doc:"When the first request to an upstream began, in Unix seconds"`
	CompletedAt   *int64          `json:"completed_at" doc:"When it ended, in Unix seconds"`
	ExpiresAt     *int64          `json:"expires_at" doc:"When it is removed, in Unix seconds"`
	Usage         *taskUsage      `json:"usage" doc:"What the call used; null where it is not known"`
	Cost          *float64        `json:"cost" doc:"In the currency of the gateway's prices"`
	Error         *Failure        `json:"error" doc:"Why a failed task failed"`
	Result        *taskResult     `json:"result" doc:"The archived answer: its path, which requires the token, its status, type, length and digest"`
	Metadata      json.RawMessage `json:"metadata" doc:"The caller's own object; that of a call is omitted above 16 KiB"`
}

// TransformSchema declares that objects may be null.
func (task) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return body.Nullable(s, "usage", "error", "result")
}

type taskUsage struct {
	InputTokens  int64 `json:"input_tokens" doc:"Tokens of the request"`
	OutputTokens int64 `json:"output_tokens" doc:"Tokens of the answer"`
	TotalTokens  int64 `json:"total_tokens" doc:"Both"`
}

// Failure is the reason why a task failed.
type Failure struct {
	Code    string `json:"code" doc:"Code of the error"`
	Message string `json:"message" doc:"Description of the error"`
}

// NewFailure returns the failure for the answer about a task, nil for none.
func NewFailure(failure *providers.VideoFailure) *Failure {
	if failure == nil {
		return nil
	}
	return &Failure{failure.Code, failure.Message}
}

type taskResult struct {
	URL         string `json:"url" doc:"Path of the result, which requires the token"`
	StatusCode  int    `json:"status_code" doc:"HTTP status"`
	ContentType string `json:"content_type" doc:"Media type"`
	Bytes       int64  `json:"bytes" doc:"Length"`
	SHA256      string `json:"sha256" doc:"Digest in hexadecimal"`
}

// statusOf returns the status of a task. In the formats of videos, a cancelled video is a failed one.
func statusOf(t tasks.Task) workflows.State {
	if t.State == workflows.Failed && t.Failure != nil && t.Failure.Code == workflows.CodeCancelled {
		return workflows.Cancelled
	}
	return t.State
}

func newTask(t tasks.Task) task {
	shown := task{
		ID: t.ID, Object: "task", Kind: string(t.Kind()), Operation: body.OrNull(t.Operation), Model: t.Request.Named(), Status: string(statusOf(t)),
		Attempts: t.Progressed.Attempts, CreatedAt: t.CreatedAt.Unix(), StartedAt: body.UnixOrNull(t.Progressed.StartedAt),
		CompletedAt: body.UnixOrNull(t.CompletedAt), ExpiresAt: body.UnixOrNull(t.ExpiresAt), Metadata: t.Request.Metadata,
	}
	if len(shown.Metadata) == 0 {
		shown.Metadata = json.RawMessage("{}")
	}
	if t.QueuePosition > 0 && t.State == workflows.Queued {
		shown.QueuePosition = &t.QueuePosition
	}
	if t.Kind() == activities.KindCall && !t.Ended() {
		shown.Stage = body.OrNull(string(cmp.Or(t.Progressed.Stage, activities.StageWaiting)))
	}
	if t.Job != nil {
		shown.Attempts = 1
	}
	if shown.Status != string(workflows.Cancelled) {
		shown.Error = NewFailure(t.Failure)
	}
	if call := t.Call; call != nil {
		shown.Attempts, shown.StartedAt = call.Attempts, body.UnixOrNull(call.StartedAt)
		if used := call.Usage; used != (providers.Usage{}) {
			shown.Usage = &taskUsage{used.Input, used.Output, used.Input + used.Output}
		}
		if call.Priced {
			shown.Cost = new(float64(call.Cost) / 1e9)
		}
	}
	if len(t.Outputs) > 0 && shown.Status != string(workflows.Cancelled) { // the result of a cancelled task is a conflict
		output, status := t.Outputs[0], 200
		if t.Call != nil {
			status = t.Call.Status
		}
		shown.Result = &taskResult{resultPath(t.ID), status, output.ContentType, output.Size, output.SHA256}
	}
	return shown
}

func resultPath(id string) string { return root + "/" + id + "/result" }
