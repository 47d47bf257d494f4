package videos

import (
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/activities"
	"modelrelay/api/body"
	"modelrelay/api/calls"
	"modelrelay/api/edge"
	apitasks "modelrelay/api/tasks"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// Interaction is a task as an interaction of the Gemini format.
type Interaction struct {
	ID      string             `json:"id" doc:"Video task id"`
	Object  string             `json:"object" enum:"interaction"`
	Model   string             `json:"model"`
	Status  string             `json:"status" enum:"in_progress,completed,failed,cancelled"`
	Created string             `json:"created" format:"date-time"`
	Updated string             `json:"updated" format:"date-time" doc:"When it ended, or was last read"`
	Input   string             `json:"input,omitempty" doc:"The prompt, if include_input is true"`
	Steps   []interactionStep  `json:"steps" nullable:"false" doc:"The videos, as output of the model; none before completion and after expiry"`
	Errors  []apitasks.Failure `json:"errors,omitempty" nullable:"false" doc:"Why a failed task failed"`
	// Progress and QueuePosition are extensions of the format.
	Progress      int `json:"progress" minimum:"0" maximum:"100" doc:"Percent; 100 only when completed"`
	QueuePosition int `json:"queue_position,omitempty" minimum:"1" doc:"Position in the line at a full upstream; 1 is next"`
}

type interactionStep struct {
	Type    string               `json:"type" enum:"model_output"`
	Content []interactionContent `json:"content" nullable:"false"`
}

type interactionContent struct {
	Type     string `json:"type" enum:"video"`
	MIMEType string `json:"mime_type"`
	URI      string `json:"uri" doc:"Where the file is, for the token that made it"`
}

// interactionOf returns a task as an interaction, with the addresses of its files below base.
func interactionOf(task tasks.Task, base string) Interaction {
	i := Interaction{
		ID: task.ID, Object: "interaction", Model: task.Request.Model, Status: "in_progress", Steps: []interactionStep{},
		Created: task.CreatedAt.UTC().Format(time.RFC3339), Updated: task.CompletedAt.UTC().Format(time.RFC3339),
		Progress: task.Progress, QueuePosition: task.QueuePosition,
	}
	if task.CompletedAt.IsZero() {
		i.Updated = time.Now().UTC().Format(time.RFC3339)
	}
	switch task.State {
	case workflows.Failed:
		i.Status = "failed"
		if task.Failure.Code == workflows.CodeCancelled {
			i.Status = "cancelled"
		}
		i.Errors = []apitasks.Failure{*apitasks.NewFailure(task.Failure)}
	case workflows.Completed:
		i.Status = "completed"
		if task.Expired() || len(task.Outputs) == 0 {
			break
		}
		var videos []interactionContent
		for index, output := range task.Outputs {
			videos = append(videos, interactionContent{"video", contentType(output.ContentType, ""), fileURI(base, task.ID, index)})
		}
		i.Steps = append(i.Steps, interactionStep{"model_output", videos})
	}
	return i
}

type interactions struct{ service *Service }

// AddInteractions adds read, cancel and delete of interactions, and returns the function that starts a task. others serves interactions
// without a video.
func (s *Service) AddInteractions(
	g *edge.Group, others func(x *edge.Request, r *http.Request, do providers.StoredVerb, id string) error,
) (begin func(x *edge.Request, r *http.Request, ch *calls.Charge, b *body.JSON) (taken bool, err error)) {
	a, registry := interactions{s}, g.OpenAPI().Components.Schemas
	id, flag := edge.PathParameter("interaction", "Id of an interaction"), &huma.Schema{Type: huma.TypeBoolean}
	for _, under := range [...]struct{ prefix, suffix string }{{"/v1beta", ""}, {"/v1", "V1"}} {
		prefix, suffix := under.prefix, under.suffix
		for _, operation := range [...]struct {
			huma.Operation

			do     providers.StoredVerb
			handle func(x *edge.Request, r *http.Request, id string) (any, error)
		}{
			{huma.Operation{
				OperationID: "getInteraction", Method: http.MethodGet, Summary: "Get an interaction", Description: storedWords,
				Parameters: []*huma.Param{
					id, apitasks.WaitParameter(),
					{Name: "include_input", In: "query", Schema: flag, Description: "Return the prompt too"},
					{Name: "stream", In: "query", Schema: flag, Description: "Return events; not for a video"},
					edge.Parameter("query", "last_event_id", "The event of the stream after which it continues"),
				},
				Responses: declareInteraction(registry, "text/event-stream"),
			}, providers.StoredGet, a.read},
			{huma.Operation{
				OperationID: "cancelInteraction", Method: http.MethodPost, Path: "/cancel", Summary: "Cancel an interaction",
				Description: cancelWords + " " + storedWords, Parameters: []*huma.Param{id}, Responses: declareInteraction(registry),
			}, providers.StoredCancel, a.cancel},
			{huma.Operation{
				OperationID: "deleteInteraction", Method: http.MethodDelete, Summary: "Delete an interaction", Description: storedWords,
				Parameters: []*huma.Param{id}, Responses: body.DeclareAnswer[struct{}](registry, "It is deleted"),
			}, providers.StoredDelete, a.remove},
		} {
			op := operation.Operation
			op.OperationID, op.Path, op.Summary = op.OperationID+suffix, prefix+"/interactions/{interaction}"+op.Path, op.Summary+", "+prefix
			op.Tags = []string{edge.VideoTag}
			byID := g.With(edge.Access{Meter: edge.MeterReads}) // the id determines the required permission
			byID.Handle(op, func(x *edge.Request, r *http.Request) error {
				id := r.PathValue("interaction")
				if !strings.HasPrefix(id, activities.VideoIDs) {
					return others(x, r, operation.do, id)
				}
				if err := x.Permit(edge.VideoPermission); err != nil {
					return err
				}
				answer, err := operation.handle(x, r, id)
				if err != nil {
					return err
				}
				return x.JSON(answer)
			})
		}
	}
	return a.begin
}

// declareInteraction declares an interaction. It is the upstream's object unless it generates a video. streams are further media types.
func declareInteraction(registry huma.Registry, streams ...string) map[string]*huma.Response {
	content := map[string]*huma.MediaType{
		"application/json": {Schema: &huma.Schema{AnyOf: []*huma.Schema{body.SchemaOf[Interaction](registry), body.AnyObject()}}},
	}
	for _, mediaType := range streams {
		content[mediaType] = &huma.MediaType{Schema: body.Text()}
	}
	return map[string]*huma.Response{"200": {Description: "The interaction of a video, or that of the upstream", Content: content}}
}

// storedWords describes how long the gateway can find relayed interactions.
const storedWords = "For a day, a relayed interaction is requested from the channel and key that made it, and the answer is that upstream's. " +
	"For another token it does not exist."

// begin starts the task of an interaction that requests a video in the background; taken is false for other interactions.
func (a interactions) begin(x *edge.Request, r *http.Request, ch *calls.Charge, b *body.JSON) (taken bool, err error) {
	relayed := router.Request{
		Group: x.Caller.Group, Model: a.service.creator.router.Public(b.Text("model")),
		Endpoint: providers.Endpoint{Format: providers.Gemini, Operation: providers.Interactions},
	}
	if !isVideo(b) {
		if relayed.Model != "" && b.Flag("background") && x.Caller.Allows(relayed.Model) && !a.service.creator.router.Serves(relayed) {
			video := relayed
			if video.Endpoint = (providers.Endpoint{Operation: providers.VideoTask}); a.service.creator.router.Serves(video) {
				return true, providers.InvalidField("background",
					"Invalid request: for this model, 'background' requires a video: 'response_format' with the type video.")
			}
		}
		return false, nil
	}
	if !b.Flag("background") {
		if a.service.creator.router.Serves(relayed) {
			return false, nil
		}
		return true, providers.InvalidField("background", "Invalid request: 'background' must be true for a video.")
	}
	if err := x.Permit(edge.VideoPermission); err != nil {
		return true, err
	}
	req, on, err := a.service.checks.readInteraction(b)
	if err != nil {
		return true, err
	}
	task, err := a.service.creator.begin(x, r, ch, interactionDialect(), req, on)
	if err != nil {
		return true, err
	}
	return true, x.JSON(interactionOf(task, a.service.edge.Origin(r)))
}

func (a interactions) read(_ *edge.Request, r *http.Request, id string) (any, error) {
	query := r.URL.Query()
	if stream := query.Get("stream"); stream != "" && stream != "false" {
		return nil, providers.InvalidField("stream",
			"Invalid request: an interaction that makes a video has no stream; use 'wait' to wait for a change.")
	}
	wait, err := apitasks.ParseWait([]byte(query.Get("wait")))
	if err != nil {
		return nil, err
	}
	task, err := a.service.reader.Read(r.Context(), id, wait)
	if err != nil {
		return nil, err
	}
	i := interactionOf(task, a.service.edge.Origin(r))
	if query.Get("include_input") == "true" {
		i.Input = task.Request.Prompt
	}
	return i, nil
}

func (a interactions) cancel(x *edge.Request, r *http.Request, id string) (any, error) {
	task, err := a.service.tasks.Cancel(r.Context(), id, x.Caller.ID)
	return interactionOf(task, a.service.edge.Origin(r)), err
}

func (a interactions) remove(x *edge.Request, r *http.Request, id string) (any, error) {
	return struct{}{}, a.service.tasks.Delete(r.Context(), id, x.Caller.ID)
}

func interactionDialect() dialect {
	const response = "response_format."
	return dialect{format: providers.Gemini, names: map[string]string{
		"seconds": response + "duration", "aspect_ratio": response + "aspect_ratio", "resolution": response + "resolution", "prompt": "input",
		"image": "input", "last_image": "input", "reference_images": "input", "video": "input", "audio": "input",
		"seed": "generation_config.seed",
	}}
}
