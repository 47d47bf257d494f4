package videos

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	apitasks "modelrelay/api/tasks"
	"modelrelay/providers"
	"modelrelay/providers/upstream"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

func (s *Service) addContent(g *edge.Group, tags []string) {
	op := huma.Operation{
		OperationID: "getVideoContent", Method: http.MethodGet, Path: "/v1/videos/{task_id}/content", Tags: tags,
		Summary:     "Get the video file",
		Description: "Streams a finished video. Ranges and conditional requests work as in RFC 9110.",
		Parameters:  []*huma.Param{edge.PathParameter("task_id", "Video task id")},
	}
	body.DeclareContent(&op, g.FaultSchema())
	g = g.With(reads())
	g.Handle(op, s.serveTask)
	op.Method, op.OperationID, op.Hidden = http.MethodHead, "headVideoContent", true
	g.Handle(op, s.serveTask)
}

func (s *Service) serveTask(x *edge.Request, r *http.Request) error {
	index, variant, err := outputAsked(r)
	if err != nil {
		return err
	}
	return s.serveOutput(x, r, r.PathValue("task_id"), index, variant)
}

func (s *Service) serveOutput(x *edge.Request, r *http.Request, id string, index int, variant string) error {
	task, err := s.tasks.Find(r.Context(), id, x.Caller.ID)
	if err != nil {
		return err
	}
	x.Outcome.Model = task.Request.Model
	output, err := outputOf(task, index, variant)
	if err != nil {
		return err
	}
	if r.Method != http.MethodHead {
		done, err := x.Download()
		if err != nil {
			return err
		}
		defer done()
	}
	if err := x.WhilePermitted(); err != nil {
		return err
	}
	return apitasks.ServeObject(x, r, s.archive, output)
}

// ServeContent serves the output of a task that the query selects. The caller has checked the permissions.
func (s *Service) ServeContent(x *edge.Request, r *http.Request, task tasks.Task) error {
	index, variant, err := outputAsked(r)
	if err != nil {
		return err
	}
	output, err := outputOf(task, index, variant)
	if err != nil {
		return err
	}
	return apitasks.ServeObject(x, r, s.archive, output)
}

// outputOf returns an output of a task, or a variant of it; NotFound if there is none.
func outputOf(task tasks.Task, index int, variant string) (apitasks.Object, error) {
	object := apitasks.Object{Modified: task.CompletedAt, Noun: "video", Gone: noContent()}
	if task.State != workflows.Completed || task.Expired() || index >= len(task.Outputs) {
		return object, noContent()
	}
	whole := task.Outputs[index]
	if variant == "" {
		object.Key, object.SHA256, object.Size = whole.Object, whole.SHA256, whole.Size
		object.ContentType = contentType(whole.ContentType, variant)
		return object, nil
	}
	for _, picture := range whole.Variants {
		if picture.Name == variant {
			object.Key, object.SHA256, object.Size = picture.Object, picture.SHA256, picture.Size
			object.ContentType = contentType(picture.ContentType, variant)
			return object, nil
		}
	}
	return object, noContent()
}

// contentType returns the media type of an output or variant. It is the vendor's only for a video or a picture, never for a page or a
// script.
func contentType(called, variant string) string {
	kind := upstream.MediaType(http.Header{"Content-Type": {called}})
	switch {
	case variant == "" && strings.HasPrefix(kind, "video/"):
		return kind
	case variant == "":
		return "video/mp4"
	case slices.Contains([]string{"image/webp", "image/png", "image/gif", "image/avif"}, kind):
		return kind
	default: // also for image/svg+xml, which may contain scripts
		return "image/jpeg"
	}
}

// outputAsked parses the query of a content request: the index of the output, and its variant, "" for the video itself.
func outputAsked(r *http.Request) (index int, variant string, err error) {
	query := r.URL.Query()
	switch variant = query.Get("variant"); {
	case variant == "video":
		variant = ""
	case variant != "" && !slices.Contains(providers.VariantNames(), variant):
		return 0, "", providers.InvalidField("variant", "Invalid request: 'variant' must be one of video, thumbnail, spritesheet.")
	}
	text := query.Get("index")
	if text == "" {
		return 0, variant, nil
	}
	index, err = strconv.Atoi(text)
	if err != nil || index < 0 {
		return 0, "", providers.InvalidField("index", "Invalid request: 'index' must be a number from 0.")
	}
	return index, variant, nil
}

func noContent() *providers.Fault {
	return providers.Faultf(providers.NotFound, "The video does not exist or is not finished.")
}
