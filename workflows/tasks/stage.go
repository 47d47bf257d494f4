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
	// stageTimeout bounds the writes of a create's media and request to the archive. After it the client gets 503. The bound of small writes
	// is stageLeast, shorter than the timeouts of clients and proxies; it grows with the size by stageRate, in bytes a second.
	stageTimeout = 30 * time.Second
	stageLeast   = 8 * time.Second
	stageRate    = 4 << 20
	// unstageTimeout bounds their removal after a failed create. Nothing depends on it.
	unstageTimeout = 2 * time.Second
	// stageLimit is the number of concurrent uploads of one create.
	stageLimit = 4
)

// load holds the data that a create writes to the archive before its task begins. Its names contain the incarnation: another create with
// the same idempotency key cannot change an accepted task's input, and the removal of an earlier task with the id does not remove it.
type load struct {
	uploads []upload
	// request is written to requestObject if it must not be in the workflow's input; else nil.
	request       *providers.VideoRequest
	requestObject string
}

// upload is an input; its bytes are written to its Object.
type upload struct {
	providers.Media

	// from is the object of another task that the bytes are copied from, "" if Data holds them. That task may be removed later.
	from string
}

func (l load) empty() bool { return len(l.uploads) == 0 && l.request == nil }

// place puts the request into the workflow's input, or into the load if it is too large or too private for that. The memo receives the
// parts that answers contain, if permitted. It stores nothing. It returns a fault for a request that no task could carry.
func place(req providers.VideoRequest, start *workflows.Input, m *memo) (load, error) {
	var l load
	at := activities.IncarnationPrefix(start.TaskID, start.Incarnation)
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
	shown := req
	shown.Inputs, shown.Extra, shown.WebhookURL, shown.Source = nil, nil, "", nil
	m.Request = &shown
	if inline(doc) {
		start.Request = &req
		return l, nil
	}
	l.request, l.requestObject = &req, at+"request.json"
	start.RequestObject = l.requestObject
	if doc, err = canonical(shown); err != nil || !inline(doc) {
		shown.Prompt, shown.Size, shown.User, shown.Metadata = "", "", "", nil
		m.RequestObject = l.requestObject
	}
	return l, nil
}

func (c *creation) stage(ctx context.Context, l load) error {
	size := int64(0)
	for _, input := range l.uploads {
		size += input.Size
	}
	ctx, cancel := context.WithTimeout(ctx, min(stageTimeout, stageLeast+time.Duration(size/stageRate)*time.Second))
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

// put writes an input to the archive. It returns NotFound for a copy of an output of a removed task.
func (c *creation) put(ctx context.Context, input upload) error {
	var content io.Reader = bytes.NewReader(input.Data)
	if input.from != "" {
		source, err := c.opts.Objects.Open(ctx, input.from)
		if errors.Is(err, storage.ErrNotFound) {
			return refusal(providers.NotFound, "The source video no longer exists.", 0, err)
		}
		if err != nil {
			return err
		}
		defer func() { _ = source.Close() }() // it was only read
		content = source
	}
	_, err := c.opts.Objects.Put(ctx, input.Object, content, input.Size, archive.PutOptions{ContentType: input.ContentType})
	return err
}

func tooLarge(err error) *providers.Fault {
	return refusal(providers.TooLarge, "The request is too large without its media.", 0, err)
}

// unstage removes the objects of a create without a task. The sweep removes those that stay.
func (c *creation) unstage(ctx context.Context, id, incarnation string) {
	ctx, cancel := context.WithTimeout(ctx, unstageTimeout)
	defer cancel()
	if err := c.opts.Objects.DeletePrefix(ctx, activities.IncarnationPrefix(id, incarnation)); err != nil {
		c.opts.Log.WarnContext(ctx, "staged objects not removed", "task", id, "error", err)
	}
}
