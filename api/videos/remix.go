package videos

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/calls"
	"modelrelay/api/edge"
	apitasks "modelrelay/api/tasks"
	"modelrelay/providers"
	"modelrelay/workflows/tasks"
)

// openAIRemixBody is the JSON body of a remix. It is never filled.
type openAIRemixBody struct {
	Prompt     string         `json:"prompt" minLength:"1" doc:"What is to change"`
	Metadata   map[string]any `json:"metadata,omitempty" doc:"Echoed in the task; its members reach the vendor too"`
	WebhookURL string         `json:"webhook_url,omitempty" doc:"Address that receives the event at the task's end; requires a token with a webhook secret"`
}

// openAIRemixForm is the multipart body of a remix. It is never filled.
type openAIRemixForm struct {
	Prompt     string `json:"prompt" doc:"What is to change"`
	WebhookURL string `json:"webhook_url,omitempty" doc:"Address that receives the event at the task's end; requires a token with a webhook secret"`
}

func (s *Service) addRemix(g *edge.Group, tags []string) {
	registry := g.OpenAPI().Components.Schemas
	check := body.NewChecker[openAIRemixBody](registry)
	g.With(creates()).Handle(huma.Operation{
		OperationID: "remixVideo", Method: http.MethodPost, Path: "/v1/videos/{task_id}/remix", Tags: tags,
		Summary: "Make a variation of a completed video",
		Description: "A new task at the upstream that made the video; the answer is 400 if the upstream cannot do it. Model, seconds " +
			"and size are those of the video: the gateway refuses fields that set them.",
		Parameters:  []*huma.Param{edge.PathParameter("task_id", "Id of the video to remix"), idempotencyParameter()},
		RequestBody: body.DeclareEither[openAIRemixBody, openAIRemixForm](registry),
		Responses:   body.DeclareAnswer[openAIVideo](registry, "The new task"),
	}, s.creator.create(dialectOf(providers.OpenAI), func(x *edge.Request, r *http.Request) (providers.VideoRequest, work, error) {
		req, err := s.checks.readRemix(x, r, check)
		req.RemixOf = r.PathValue("task_id")
		return req, work{}, err
	}, showOpenAIVideo))
}

// remix starts the remix of the video RemixOf. A repeat does not require that video.
func (c *creator) remix(x *edge.Request, r *http.Request, ch *calls.Charge, in dialect, req providers.VideoRequest) (tasks.Task, error) {
	source, err := c.tasks.Find(r.Context(), req.RemixOf, x.Caller.ID)
	if fault, ok := errors.AsType[*providers.Fault](err); ok && fault.Kind == providers.NotFound {
		create, bad := apitasks.NewCreate(x, r, in.format, req)
		if bad != nil {
			return tasks.Task{}, bad
		}
		return apitasks.Create(x, r, c.tasks, create, err)
	}
	if err != nil {
		return tasks.Task{}, err
	}
	req.Model, req.Alias, req.Size = source.Request.Model, source.Request.Alias, source.Request.Size
	req.Seconds = cmp.Or(source.Request.Seconds, source.Seconds)
	req.Width, req.Height = source.Width, source.Height
	if err := c.complete(x, &req, false); err != nil {
		return tasks.Task{}, err
	}
	return c.start(x, r, ch, in, req)
}

// readRemix reads the changes. It refuses fields that a remix takes from its source.
func (c fieldChecks) readRemix(x *edge.Request, r *http.Request, check *body.Checker) (providers.VideoRequest, error) {
	b, form, err := readSora(x, r, check)
	if err == nil && len(form.references)+len(form.others) > 0 {
		err = ofTheSource("input_reference")
	}
	if err != nil {
		return providers.VideoRequest{}, err
	}
	req, err := c.read(b)
	if err == nil {
		err = c.refuseFields(&req)
	}
	if err == nil && req.Prompt == "" {
		err = providers.InvalidField("prompt", "Invalid request: 'prompt' is required.")
	}
	return req, err
}
