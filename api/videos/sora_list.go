package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/workflows/tasks"
)

// videoListQuery is the input of the list.
type videoListQuery struct {
	After string `query:"after" doc:"Id of the last task of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"Length of the page"`
	Order string `query:"order" enum:"asc,desc" default:"desc" doc:"By creation: desc has the newest first"`
}

// openAIVideoList is a page of a token's tasks.
type openAIVideoList struct {
	Object  string        `json:"object" enum:"list"`
	Data    []openAIVideo `json:"data" nullable:"false"`
	FirstID *string       `json:"first_id" doc:"Null in an empty page"`
	LastID  *string       `json:"last_id" doc:"What to send as after for the next page; null in an empty one"`
	HasMore bool          `json:"has_more"`
}

// videoDeleted is the answer to a deletion.
type videoDeleted struct {
	ID      string `json:"id"`
	Object  string `json:"object" enum:"video.deleted"`
	Deleted bool   `json:"deleted"`
}

type videoListAnswer struct {
	Body openAIVideoList
}

type videoDeletedAnswer struct {
	Body videoDeleted
}

// addOpenAIVideoList adds GET /v1/videos.
func (s *Server) addOpenAIVideoList(g *edge.Group, tags []string) {
	huma.Register(g, huma.Operation{
		OperationID: "listVideos", Method: http.MethodGet, Path: "/v1/videos", Tags: tags,
		Summary: "List the token's video tasks", Responses: edge.DeclareDefault(),
	}, func(ctx context.Context, in *videoListQuery) (*videoListAnswer, error) {
		if err := edge.Of(ctx).Read(in.Limit); err != nil { // each task of the page is one
			return nil, err
		}
		page, err := s.tasks.List(ctx, tasks.ListQuery{
			TokenID: edge.Of(ctx).Caller.ID, After: in.After, Limit: in.Limit, Ascending: in.Order == "asc",
		})
		if err != nil {
			return nil, err
		}
		list := openAIVideoList{Object: "list", Data: make([]openAIVideo, len(page.Tasks)), HasMore: page.More}
		for i, task := range page.Tasks {
			list.Data[i] = newOpenAIVideo(task)
		}
		if n := len(page.Tasks); n > 0 {
			list.FirstID, list.LastID = &page.Tasks[0].ID, &page.Tasks[n-1].ID
		}
		return &videoListAnswer{Body: list}, nil
	})
}

// addDelete adds the deletion of a task at a path.
func (s *Server) addDelete(g *edge.Group, operationID, path string) {
	huma.Register(g, huma.Operation{
		OperationID: operationID, Method: http.MethodDelete, Path: path, Tags: []string{"Video"},
		Summary: "Delete a video task", Metadata: edge.Reads(), Responses: edge.DeclareDefault(),
		Description: "Removes the task and its videos; one that runs is cancelled first. Waits up to two seconds for the effect; " +
			"the task is not found from then on.",
	}, func(ctx context.Context, in *videoPath) (*videoDeletedAnswer, error) {
		if err := s.tasks.Delete(ctx, in.ID, edge.Of(ctx).Caller.ID); err != nil {
			return nil, err
		}
		return &videoDeletedAnswer{Body: videoDeleted{ID: in.ID, Object: "video.deleted", Deleted: true}}, nil
	})
}
