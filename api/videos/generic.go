package videos

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	apitasks "modelrelay/api/tasks"
	"modelrelay/providers"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

const genericPath = "/v1/video/generations"

// GenericCreated is a new task in the generic format.
type GenericCreated struct {
	ID        string `json:"id" doc:"Video task id"`
	TaskID    string `json:"task_id" doc:"Video task id, as in id"`
	Object    string `json:"object" enum:"video"`
	Model     string `json:"model" doc:"Model used"`
	Status    string `json:"status" enum:"queued,in_progress,completed,failed"`
	Progress  int    `json:"progress" minimum:"0" maximum:"100" doc:"Percent; 100 only when completed"`
	CreatedAt int64  `json:"created_at" doc:"Unix seconds"`
}

// genericVideo is a task in the generic format. All keys are always present, null if unset, except metadata and queue_position.
type genericVideo struct {
	GenericCreated
	CompletedAt   *int64            `json:"completed_at" doc:"When it ended, in Unix seconds"`
	ExpiresAt     *int64            `json:"expires_at" doc:"When the video is removed, in Unix seconds"`
	Duration      *float64          `json:"duration" doc:"Seconds of the video"`
	Width         *int              `json:"width" doc:"In pixels"`
	Height        *int              `json:"height" doc:"In pixels"`
	URL           *string           `json:"url" doc:"The first video, once completed: a path of this service, which needs the token, or a link that needs none"`
	URLs          []string          `json:"urls" nullable:"false" doc:"All videos, in order"`
	Error         *apitasks.Failure `json:"error" doc:"Why a failed task failed"`
	Metadata      json.RawMessage   `json:"metadata,omitempty" doc:"The caller's own object"`
	QueuePosition int               `json:"queue_position,omitempty" minimum:"1" doc:"Position in the line at a full upstream; 1 is next"`
}

// TransformSchema declares that the error may be null.
func (genericVideo) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return body.Nullable(s, "error")
}

func newGenericCreated(task tasks.Task) GenericCreated {
	return GenericCreated{
		ID: task.ID, TaskID: task.ID, Object: "video", Model: task.Request.Named(), Status: string(task.State),
		Progress: task.Progress, CreatedAt: task.CreatedAt.Unix(),
	}
}

func newGenericVideo(task tasks.Task, urls []string) genericVideo {
	video := genericVideo{
		GenericCreated: newGenericCreated(task), CompletedAt: body.UnixOrNull(task.CompletedAt), ExpiresAt: body.UnixOrNull(task.ExpiresAt),
		URLs: urls, Error: apitasks.NewFailure(task.Failure), Metadata: task.Request.Metadata, QueuePosition: task.QueuePosition,
	}
	if len(urls) > 0 {
		video.URL = &urls[0]
	}
	if seconds, err := strconv.ParseFloat(cmp.Or(task.Request.Seconds, task.Seconds), 64); err == nil {
		video.Duration = &seconds
	}
	if task.Width > 0 && task.Height > 0 {
		video.Width, video.Height = &task.Width, &task.Height
	}
	return video
}

func (s *Service) addGeneric(g *edge.Group) {
	tags := []string{edge.VideoTag}
	s.addGenericCreate(g, tags)
	addTask(s, g, genericPath, "VideoGeneration", ", generic format", func(ctx context.Context, task tasks.Task) genericVideo {
		return newGenericVideo(task, s.addresses(ctx, task, ""))
	})
}

func (s *Service) addGenericCreate(g *edge.Group, tags []string) {
	registry := g.OpenAPI().Components.Schemas
	check := body.NewChecker[genericVideoBody](registry)
	g.With(creates()).Handle(huma.Operation{
		OperationID: "createVideoGeneration", Method: http.MethodPost, Path: genericPath, Tags: tags,
		Summary:     "Create a video task, generic format",
		Description: createWords,
		Parameters:  []*huma.Param{idempotencyParameter()},
		RequestBody: body.DeclareJSON[genericVideoBody](registry),
		Responses:   body.DeclareAnswer[GenericCreated](registry, "The task"),
	}, s.creator.create(dialectOf(providers.Generic), func(x *edge.Request, r *http.Request) (req providers.VideoRequest, on work, err error) {
		b, err := readJSON(x, r, check)
		if err == nil {
			req, err = s.checks.read(b)
		}
		return req, on, err
	}, func(_ *edge.Request, task tasks.Task) any { return newGenericCreated(task) }))
}

// genericVideoBody is the body of a create in the generic format. It is never filled: the schema and the field checks are compiled from it.
type genericVideoBody struct {
	Model  string `json:"model,omitempty" doc:"Model or style id; the deployment may have a default"`
	Prompt string `json:"prompt,omitempty" doc:"What the video shows, in 128 KiB at most"`
	CommonFields
	Duration       float64        `json:"duration,omitempty" doc:"Seconds to generate"`
	Width          int            `json:"width,omitempty" doc:"In pixels"`
	Height         int            `json:"height,omitempty" doc:"In pixels"`
	FPS            int            `json:"fps,omitempty" doc:"Frames per second, where the vendor lets them be chosen"`
	Seed           int64          `json:"seed,omitempty"`
	N              int            `json:"n,omitempty" doc:"Number of videos; more than one only where the vendor makes several"`
	ResponseFormat string         `json:"response_format,omitempty" doc:"Stored with the task; the answer always has URLs"`
	User           string         `json:"user,omitempty" doc:"The caller's own user, stored with the task"`
	Metadata       map[string]any `json:"metadata,omitempty" doc:"Extension parameters such as negative_prompt, style, quality_level: echoed in the task, and sent to the vendor"`
	WebhookURL     string         `json:"webhook_url,omitempty" doc:"Address that receives the event at the task's end; requires a token with a webhook secret"`
}

// linkTTL is the lifetime of a link: enough to download a video, and too short for misuse.
const linkTTL = time.Hour

// addresses returns the addresses of a task's outputs, in order: links that require no token if the deployment has them, else paths below
// base for the token of the task. It returns none before the task is completed and after the outputs have expired.
func (s *Service) addresses(ctx context.Context, task tasks.Task, base string) []string {
	if task.State != workflows.Completed || task.Expired() {
		return []string{}
	}
	life := linkTTL
	if !task.ExpiresAt.IsZero() {
		life = max(time.Second, min(life, time.Until(task.ExpiresAt)))
	}
	urls := make([]string, len(task.Outputs))
	for index, output := range task.Outputs {
		if s.links != nil {
			link, err := s.links.Presign(ctx, output.Object, life)
			if err == nil {
				urls[index] = link
				continue
			}
			s.edge.Log().WarnContext(ctx, "no link made, the answer has the gateway's own address", "task", task.ID, "error", err)
		}
		urls[index] = base + "/v1/videos/" + task.ID + "/content"
		if index > 0 {
			urls[index] += "?index=" + strconv.Itoa(index)
		}
	}
	return urls
}
