package videos

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	apitasks "modelrelay/api/tasks"
	"modelrelay/providers"
	"modelrelay/workflows/tasks"
)

// defaultSeconds is the length in an answer if neither the client nor the vendor specified it.
const defaultSeconds = "4"

// openAIVideo is the Sora-compatible video object. All of its thirteen keys are always present. metadata is present only if the client sent
// it.
type openAIVideo struct {
	ID          string            `json:"id" doc:"Video task id"`
	Object      string            `json:"object" enum:"video"`
	Model       string            `json:"model" doc:"Model used"`
	Status      string            `json:"status" enum:"queued,in_progress,completed,failed"`
	Progress    int               `json:"progress" minimum:"0" maximum:"100" doc:"Percent; 100 only when completed"`
	CreatedAt   int64             `json:"created_at" doc:"Unix seconds"`
	CompletedAt *int64            `json:"completed_at" doc:"When it ended, in Unix seconds"`
	ExpiresAt   *int64            `json:"expires_at" doc:"When the video is removed, in Unix seconds"`
	Seconds     string            `json:"seconds" doc:"Duration of the video"`
	Size        *string           `json:"size" doc:"Width and height, as in 1280x720"`
	Prompt      *string           `json:"prompt"`
	RemixedFrom *string           `json:"remixed_from_video_id"`
	Error       *apitasks.Failure `json:"error" doc:"Why a failed task failed"`
	Metadata    json.RawMessage   `json:"metadata,omitempty" doc:"The caller's own object"`
	// QueuePosition is an addition to the format.
	QueuePosition int `json:"queue_position,omitempty" minimum:"1" doc:"Position in the line at a full upstream; 1 is next"`
}

// TransformSchema declares that the error may be null.
func (openAIVideo) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return body.Nullable(s, "error")
}

func newOpenAIVideo(task tasks.Task) openAIVideo {
	video := openAIVideo{
		ID: task.ID, Object: "video", Model: task.Request.Named(), Status: string(task.State), Progress: task.Progress,
		CreatedAt: task.CreatedAt.Unix(), CompletedAt: body.UnixOrNull(task.CompletedAt), ExpiresAt: body.UnixOrNull(task.ExpiresAt),
		Seconds: cmp.Or(task.Request.Seconds, task.Seconds, defaultSeconds), Size: body.OrNull(task.Request.Size),
		Prompt: body.OrNull(task.Request.Prompt), Metadata: task.Request.Metadata, Error: apitasks.NewFailure(task.Failure),
		RemixedFrom: body.OrNull(task.Request.RemixOf), QueuePosition: task.QueuePosition,
	}
	if video.Size == nil && task.Width > 0 && task.Height > 0 {
		video.Size = body.OrNull(strconv.Itoa(task.Width) + "x" + strconv.Itoa(task.Height))
	}
	return video
}

func showOpenAIVideo(_ *edge.Request, task tasks.Task) any { return newOpenAIVideo(task) }

func (s *Service) addSora(g *edge.Group) {
	tags := []string{edge.VideoTag}
	s.addSoraCreate(g, tags)
	s.addSoraList(g, tags)
	s.addRemix(g, tags)
	s.addSources(g, tags)
	addCharacters(g, tags)
	addTask(s, g, "/v1/videos", "Video", "", func(_ context.Context, task tasks.Task) openAIVideo { return newOpenAIVideo(task) })
	s.addContent(g, tags)
}

// openAIVideoBody is the JSON body of a create. It is never filled: the schema and the field checks are compiled from it.
type openAIVideoBody struct {
	Model          string         `json:"model,omitempty" doc:"Model id; the deployment may have a default"`
	Prompt         string         `json:"prompt,omitempty" doc:"What the video shows, in 128 KiB at most"`
	Seconds        textOrNumber   `json:"seconds,omitzero" doc:"Seconds to generate"`
	Size           string         `json:"size,omitempty" doc:"Width and height, as in 1280x720"`
	InputReference imageReference `json:"input_reference,omitzero" doc:"Reference image, or several"`
	CommonFields
	Metadata   map[string]any `json:"metadata,omitempty" doc:"Echoed in the task; its members reach the vendor too"`
	WebhookURL string         `json:"webhook_url,omitempty" doc:"Address that receives the event at the task's end; requires a token with a webhook secret"`
}

func (s *Service) addSoraCreate(g *edge.Group, tags []string) {
	registry := g.OpenAPI().Components.Schemas
	check := body.NewChecker[openAIVideoBody](registry)
	g.With(creates()).Handle(huma.Operation{
		OperationID: "createVideo", Method: http.MethodPost, Path: "/v1/videos", Tags: tags,
		Summary:     "Create a video task",
		Description: createWords,
		Parameters:  []*huma.Param{idempotencyParameter()},
		RequestBody: body.DeclareEither[openAIVideoBody, openAIVideoForm](registry),
		Responses:   body.DeclareAnswer[openAIVideo](registry, "The task"),
	}, s.creator.create(dialectOf(providers.OpenAI), func(x *edge.Request, r *http.Request) (req providers.VideoRequest, on work, err error) {
		b, form, err := readSora(x, r, check)
		if err != nil {
			return req, on, err
		}
		req, err = s.checks.read(b, form.references...)
		req.Inputs = append(req.Inputs, form.others...)
		return req, on, err
	}, showOpenAIVideo))
}

func (s *Service) addSoraList(g *edge.Group, tags []string) {
	edge.Register(g.With(edge.Access{Permission: edge.VideoPermission}), huma.Operation{
		OperationID: "listVideos", Method: http.MethodGet, Path: "/v1/videos", Tags: tags,
		Summary: "List the token's video tasks",
	}, func(ctx context.Context, in *apitasks.PageQuery) (list apitasks.List[openAIVideo], err error) {
		if err := edge.Of(ctx).TakeReads(in.Limit); err != nil { // each task of the page counts as a read
			return list, err
		}
		page, err := s.tasks.List(ctx, in.Of(edge.Of(ctx).Caller.ID))
		return apitasks.NewList(page, newOpenAIVideo), err
	})
}
