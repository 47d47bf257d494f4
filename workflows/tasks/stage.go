package tasks

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/archive"
	"modelrelay/workflows"
)

const (
	// stageTimeout bounds the writing of a create's media and request to the archive; beyond it the caller gets 503.
	stageTimeout = 30 * time.Second
	// unstageTimeout bounds their removal where the create made no task, which nothing depends on.
	unstageTimeout = 2 * time.Second
	// stageLimit is how many uploads of one create go to the archive at a time.
	stageLimit = 4
)

// load is what a create puts into the archive before its task begins, where only the generation that it is staged for looks:
// another create with the same idempotency key cannot change an accepted task's input, and the removal of an earlier task
// with the same id leaves it.
type load struct {
	uploads []upload
	// request goes to requestObject where it may not travel in the workflow's input; else nil.
	request       *providers.VideoRequest
	requestObject string
}

// upload is an input with its Object, where its bytes go.
type upload struct {
	providers.Media

	// from is the object of another task that the bytes are copied from, "" where Data holds them. That task may be removed
	// before this one has a channel.
	from string
}

func (l load) empty() bool { return len(l.uploads) == 0 && l.request == nil }

// place puts the request into the workflow's input, or among what goes to the archive where it is too large or too private
// for that. What an answer repeats of it stands in the memo all the same, as far as it may. It stores nothing. A request
// that no task could carry is a fault.
func place(req providers.VideoRequest, start *workflows.Input, m *memo) (load, error) {
	var l load
	at := activities.GenerationPrefix(start.TaskID, start.Generation)
	for i := range req.Inputs {
		if input := &req.Inputs[i]; input.Data != nil || input.Object != "" {
			from := input.Object
			input.Object = at + "inputs/" + input.SHA256
			l.uploads = append(l.uploads, upload{*input, from})
			input.Data = nil
		}
	}
	doc, err := canonical(req)
	switch {
	case err != nil:
		return load{}, unreadable(err)
	case tooDeep(doc):
		return load{}, providers.InvalidField("", "The request is nested too deeply.")
	case len(doc) > archive.MaxDocument:
		return load{}, tooLarge(nil)
	}
	said := req
	said.Inputs, said.Extra, said.WebhookURL, said.Source = nil, nil, "", nil
	m.Request = &said
	if inline(doc) {
		start.Request = &req
		return l, nil
	}
	l.request, l.requestObject = &req, at+"request.json"
	start.RequestObject = l.requestObject
	if doc, err = canonical(said); err != nil || !inline(doc) {
		said.Prompt, said.Size, said.User, said.Metadata = "", "", "", nil
		m.RequestObject = l.requestObject
	}
	return l, nil
}

// stage puts the load into the archive.
func (c *creation) stage(ctx context.Context, l load) error {
	ctx, cancel := context.WithTimeout(ctx, stageTimeout)
	defer cancel()
	group, uploading := errgroup.WithContext(ctx)
	group.SetLimit(stageLimit)
	for _, input := range l.uploads {
		group.Go(func() error { return c.put(uploading, input) })
	}
	if err := group.Wait(); err != nil || l.request == nil {
		return err
	}
	err := c.opts.Objects.PutJSON(ctx, l.requestObject, *l.request)
	if errors.Is(err, archive.ErrTooLarge) {
		return tooLarge(err)
	}
	return err
}

// put writes an input to the archive. The fault of one that is copied from a task that is gone is NotFound.
func (c *creation) put(ctx context.Context, input upload) error {
	var content io.Reader = bytes.NewReader(input.Data)
	if input.from != "" {
		source, err := c.opts.Objects.Open(ctx, input.from)
		if errors.Is(err, storage.ErrNotFound) {
			return &providers.Fault{Kind: providers.NotFound, Message: "The source video does not exist any more.", Accepted: providers.NotAccepted, Err: err}
		}
		if err != nil {
			return err
		}
		defer func() { _ = source.Close() }() // nothing was written
		content = source
	}
	_, err := c.opts.Objects.Put(ctx, input.Object, content, input.Size, archive.PutOptions{ContentType: input.ContentType})
	return err
}

// tooLarge is the fault of a request that no document of the archive can hold.
func tooLarge(err error) *providers.Fault {
	return &providers.Fault{
		Kind: providers.TooLarge, Message: "The request is too large without its media.", Accepted: providers.NotAccepted, Err: err,
	}
}

// unstage removes what a create staged that made no task. What stays is swept when it is older than any task.
func (c *creation) unstage(ctx context.Context, id, generation string) {
	ctx, cancel := context.WithTimeout(ctx, unstageTimeout)
	defer cancel()
	if err := c.opts.Objects.DeletePrefix(ctx, activities.GenerationPrefix(id, generation)); err != nil {
		c.opts.Log.WarnContext(ctx, "inputs stay that no task has", "task", id, "err", err)
	}
}
