package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/workflows/tasks"
)

// genericPath is where the generic video format lives.
const genericPath = "/v1/video/generations"

// genericCreated is the answer to a create of the generic format.
type genericCreated struct {
	ID        string `json:"id" doc:"Video task id"`
	TaskID    string `json:"task_id" doc:"The same"`
	Object    string `json:"object" enum:"video"`
	Model     string `json:"model" doc:"Model used"`
	Status    string `json:"status" enum:"queued,in_progress,completed,failed"`
	Progress  int    `json:"progress" minimum:"0" maximum:"100" doc:"Percent; 100 only when completed"`
	CreatedAt int64  `json:"created_at" doc:"Unix seconds"`
}

// genericVideo is the task of the generic format. Its keys are always there, null where unset, but for metadata and
// queue_position.
type genericVideo struct {
	ID            string          `json:"id" doc:"Video task id"`
	TaskID        string          `json:"task_id" doc:"The same"`
	Object        string          `json:"object" enum:"video"`
	Model         string          `json:"model" doc:"Model used"`
	Status        string          `json:"status" enum:"queued,in_progress,completed,failed"`
	Progress      int             `json:"progress" minimum:"0" maximum:"100" doc:"Percent; 100 only when completed"`
	CreatedAt     int64           `json:"created_at" doc:"Unix seconds"`
	CompletedAt   *int64          `json:"completed_at" doc:"When it ended, in Unix seconds"`
	ExpiresAt     *int64          `json:"expires_at" doc:"When the video goes, in Unix seconds"`
	Duration      *float64        `json:"duration" doc:"Seconds of the video"`
	Width         *int            `json:"width" doc:"In pixels"`
	Height        *int            `json:"height" doc:"In pixels"`
	URL           *string         `json:"url" doc:"The first video, once completed: a path of this service, which needs the token, or a link that needs none"`
	URLs          []string        `json:"urls" nullable:"false" doc:"All videos, in order"`
	Error         *openAIFailure  `json:"error" doc:"Why a failed task failed"`
	Metadata      json.RawMessage `json:"metadata,omitempty" doc:"The caller's own object"`
	QueuePosition int             `json:"queue_position,omitempty" minimum:"1" doc:"While it waits for a place at a full upstream: 1 is next"`
}

func newGenericCreated(task tasks.Task) genericCreated {
	return genericCreated{
		ID: task.ID, TaskID: task.ID, Object: "video", Model: task.Request.Model, Status: string(task.State),
		Progress: task.Progress, CreatedAt: task.CreatedAt.Unix(),
	}
}

func newGenericVideo(task tasks.Task, urls []string) genericVideo {
	video := genericVideo{
		ID: task.ID, TaskID: task.ID, Object: "video", Model: task.Request.Model, Status: string(task.State),
		Progress: task.Progress, CreatedAt: task.CreatedAt.Unix(), CompletedAt: unixOrNull(task.CompletedAt),
		ExpiresAt: unixOrNull(task.ExpiresAt), URLs: urls, Error: newFailure(task.Failure), Metadata: task.Request.Metadata,
	}
	video.QueuePosition = task.QueuePosition
	if len(urls) > 0 {
		video.URL = &urls[0]
	}
	if seconds, err := strconv.ParseFloat(firstText(task.Request.Seconds, task.Seconds), 64); err == nil {
		video.Duration = &seconds
	}
	if task.Width > 0 && task.Height > 0 {
		video.Width, video.Height = &task.Width, &task.Height
	}
	return video
}

type genericAnswer struct {
	Body genericVideo
}

// addGenericVideos adds the generic video operations.
func (s *Server) addGenericVideos(g *edge.Group) {
	tags := []string{"Video"}
	s.addGenericCreate(g, tags)
	huma.Register(g, huma.Operation{
		OperationID: "getVideoGeneration", Method: http.MethodGet, Path: genericPath + "/{task_id}", Tags: tags,
		Summary: "Get a video task, generic format", Metadata: edge.Reads(), Responses: edge.DeclareDefault(),
	}, func(ctx context.Context, in *waitQuery) (*genericAnswer, error) {
		task, err := s.look(ctx, in.ID, in.wait())
		return s.answerGeneric(ctx, task, err)
	})
	huma.Register(g, huma.Operation{
		OperationID: "cancelVideoGeneration", Method: http.MethodPost, Path: genericPath + "/{task_id}/cancel", Tags: tags,
		Summary: "Cancel a video task, generic format", Description: cancelWords, Metadata: edge.Reads(), Responses: edge.DeclareDefault(),
	}, func(ctx context.Context, in *videoPath) (*genericAnswer, error) {
		task, err := s.tasks.Cancel(ctx, in.ID, edge.Of(ctx).Caller.ID)
		return s.answerGeneric(ctx, task, err)
	})
	s.addDelete(g, "deleteVideoGeneration", genericPath+"/{task_id}")
	s.addEvents(g, "followVideoGeneration", genericPath+"/{task_id}/events", func(ctx context.Context, task tasks.Task) any {
		return newGenericVideo(task, s.outputURLs(ctx, task, ""))
	})
}

func (s *Server) answerGeneric(ctx context.Context, task tasks.Task, err error) (*genericAnswer, error) {
	if err != nil {
		return nil, err
	}
	return &genericAnswer{Body: newGenericVideo(task, s.outputURLs(ctx, task, ""))}, nil
}

// addGenericCreate adds POST /v1/video/generations.
func (s *Server) addGenericCreate(g *edge.Group, tags []string) {
	registry := g.OpenAPI().Components.Schemas
	check := body.NewChecker[genericVideoBody](registry)
	g.Handle(huma.Operation{
		OperationID: "createVideoGeneration", Method: http.MethodPost, Path: genericPath, Tags: tags,
		Summary:     "Create a video task, generic format",
		Description: createWords,
		Parameters:  []*huma.Param{idempotencyParameter()},
		RequestBody: body.DeclareJSON[genericVideoBody](registry),
		Responses:   body.DeclareAnswer[genericCreated](registry, "The task"),
		Metadata:    edge.Calls(),
	}, func(x *edge.Request, r *http.Request) error {
		req, err := s.readGenericBody(x, r, check)
		if err != nil {
			return err
		}
		task, err := s.createTask(x, r, providers.Generic, req)
		if err != nil {
			return err
		}
		return x.JSON(newGenericCreated(task))
	})
}
