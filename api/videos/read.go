package videos

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
)

type videoPath struct {
	ID string `path:"task_id" doc:"Video task id"`
}

type waitQuery struct {
	ID   string `path:"task_id" doc:"Video task id"`
	Wait int    `query:"wait" minimum:"0" maximum:"60" doc:"Seconds to wait for the next change before the task is answered as it is"`
}

func (q waitQuery) wait() time.Duration { return time.Duration(q.Wait) * time.Second }

type videoDeleted struct {
	ID      string `json:"id"`
	Object  string `json:"object" enum:"video.deleted"`
	Deleted bool   `json:"deleted"`
}

func (s *Service) addDelete(g *edge.Group, operationID, path string) {
	edge.Register(g.With(reads()), huma.Operation{
		OperationID: operationID, Method: http.MethodDelete, Path: path, Tags: []string{edge.VideoTag},
		Summary: "Delete a video task",
		Description: "Removes the task and its videos; one that runs is cancelled first. Waits up to two seconds for the effect; " +
			"the task is not found from then on.",
	}, func(ctx context.Context, in *videoPath) (videoDeleted, error) {
		return videoDeleted{ID: in.ID, Object: "video.deleted", Deleted: true}, s.tasks.Delete(ctx, in.ID, edge.Of(ctx).Caller.ID)
	})
}
