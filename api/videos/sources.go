package videos

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"

	"modelrelay/api/calls"
	"modelrelay/api/edge"
	apitasks "modelrelay/api/tasks"
	"modelrelay/providers"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// work is an edit or an extension of a video, by the role; zero for a video of its own. The source is the id of a task or of its file, ""
// for a video in the inputs.
type work struct {
	source string
	role   providers.InputRole
}

// begin starts the task of a create: of a new video, of work on a source, or of the remix of a task. An edit that no model supports becomes
// a remix if that is equivalent.
func (c *creator) begin(
	x *edge.Request, r *http.Request, ch *calls.Charge, in dialect, req providers.VideoRequest, on work,
) (tasks.Task, error) {
	if req.RemixOf != "" {
		return c.remix(x, r, ch, in, req)
	}
	asked := req
	if on.source != "" {
		model, err := c.addSource(x, r, &req, on)
		if err != nil {
			return c.repeatedWork(x, r, ch, in, asked, on, err)
		}
		req.Model = cmp.Or(req.Model, model)
		if c.router.Public(asked.Model) == model {
			asked.Model = "" // the source's own model is the default
		}
	}
	if err := c.complete(x, &req, in.bare); err != nil {
		return tasks.Task{}, err
	}
	for i := range req.Inputs {
		if req.Inputs[i].Role == providers.SourceVideo {
			req.Inputs[i].Role = cmp.Or(on.role, providers.SourceVideo)
		}
	}
	if !c.remixes(asked, on) {
		return c.start(x, r, ch, in, req)
	}
	refused := c.served(x, in, req)
	if fault, ok := errors.AsType[*providers.Fault](refused); !ok || fault.Param != cmp.Or(in.names["video"], "video") {
		return c.start(x, r, ch, in, req)
	}
	asked.RemixOf, _ = parseSource(on.source)
	task, err := c.remix(x, r, ch, in, asked)
	if fault, ok := errors.AsType[*providers.Fault](err); ok && fault.Param == "video_id" { // the upstream does not remix either
		return tasks.Task{}, refused
	}
	return task, err
}

// remixes reports whether a remix is equivalent to the requested edit: only the prompt differs from the source.
func (c *creator) remixes(asked providers.VideoRequest, on work) bool {
	return on.source != "" && on.role == providers.SourceVideo &&
		asked.Model == "" && asked.Seconds == "" && asked.Size == "" && len(asked.Inputs) == 0 && c.checks.refuseFields(&asked) == nil
}

// repeatedWork returns the task of an earlier equal edit or extension if its source no longer exists, and otherwise the failure.
func (c *creator) repeatedWork(
	x *edge.Request, r *http.Request, ch *calls.Charge, in dialect, asked providers.VideoRequest, on work, otherwise error,
) (tasks.Task, error) {
	req := asked
	create, err := apitasks.NewCreate(x, r, in.format, req)
	if err != nil || create.IdempotencyKey == "" && !create.Repeat {
		return tasks.Task{}, otherwise
	}
	named := req.Model != ""
	if !named { // the repeated task has the model of its source
		req.Model = "unknown"
	}
	if err := addInput(&req, "video", providers.Media{Role: on.role, From: sourceName(parseSource(on.source))}); err != nil {
		return tasks.Task{}, err
	}
	if err := c.complete(x, &req, false); err != nil {
		return tasks.Task{}, otherwise
	}
	if !named {
		req.Model, x.Outcome.Model = "", ""
	}
	create.Request = req
	task, err := apitasks.Create(x, r, c.tasks, create, otherwise)
	model := c.router.Public(asked.Model)
	asked.Model = "" // the remix has the model of its source
	if fault, ok := errors.AsType[*providers.Fault](err); ok && fault.Kind == providers.Mismatch && c.remixes(asked, on) {
		asked.RemixOf, _ = parseSource(on.source)
		remix, other := c.remix(x, r, ch, in, asked)
		if other == nil && model != "" && remix.Request.Model != model {
			return tasks.Task{}, err
		}
		return remix, other
	}
	return task, err
}

// addSource adds the video of a completed task of the caller to a request, and returns the task's model.
func (c *creator) addSource(x *edge.Request, r *http.Request, req *providers.VideoRequest, on work) (model string, err error) {
	id, index := parseSource(on.source)
	task, err := c.tasks.Find(r.Context(), id, x.Caller.ID)
	if err != nil {
		return "", err
	}
	if task.State != workflows.Completed || task.Expired() || index >= len(task.Outputs) {
		return "", providers.InvalidField("video", "Invalid request: 'video' must be a completed video that has not expired.")
	}
	video := task.Outputs[index]
	return task.Request.Model, addInput(req, "video", providers.Media{
		Role: on.role, Object: video.Object, ContentType: contentType(video.ContentType, ""), Size: video.Size, SHA256: video.SHA256,
		From: sourceName(id, index),
	})
}

// parseSource returns the task that a source names, by its id or a file's, and the index of its output.
func parseSource(source string) (task string, index int) {
	if task, index = parseFile(source); task != "" {
		return task, index
	}
	return source, 0
}

// sourceName returns one canonical name for an output of a task.
func sourceName(task string, index int) string {
	if index == 0 {
		return task
	}
	return task + "#" + strconv.Itoa(index)
}
