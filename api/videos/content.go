package videos

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/upstream"
	"modelrelay/storage"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// content serves the outputs of tasks.
type content struct {
	tasks   Tasks
	archive Archive
}

// add adds GET and HEAD /v1/videos/{task_id}/content.
func (c content) add(g *edge.Group, tags []string) {
	file := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	whole := map[string]*huma.MediaType{"video/*": file, "image/*": file}
	ranges := map[string]*huma.MediaType{"video/*": file, "image/*": file, "multipart/byteranges": file}
	fault := map[string]*huma.MediaType{"application/json": {Schema: g.FaultSchema()}}
	op := huma.Operation{
		OperationID: "getVideoContent", Method: http.MethodGet, Path: "/v1/videos/{task_id}/content", Tags: tags,
		Summary:     "Get the video file",
		Description: "Streams a finished video. Ranges and conditional requests work as in RFC 9110.",
		Parameters: []*huma.Param{
			edge.PathParameter("task_id", "Video task id"),
			{
				Name: "index", In: "query", Description: "Which of several videos, from 0",
				Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: new(float64)},
			},
			{
				Name: "variant", In: "query", Description: "Variants the upstream does not make are not found",
				Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"video", "thumbnail", "spritesheet"}},
			},
		},
		Responses: map[string]*huma.Response{
			"200": {Description: "The video, or the picture that the variant names", Content: whole},
			"206": {Description: "The ranges asked for", Content: ranges},
			"304": {Description: "The client has the video as it is"},
			"412": {Description: "The video is not the one that the request's conditions name", Content: fault},
			"416": {Description: "The range does not exist", Content: fault},
		},
	}
	g = g.With(reads())
	g.Handle(op, c.serveTask)
	op.Method, op.OperationID, op.Hidden = http.MethodHead, "headVideoContent", true
	g.Handle(op, c.serveTask)
}

// serveTask serves the output of the task in the path that the query selects.
func (c content) serveTask(x *edge.Request, r *http.Request) error {
	index, variant, err := outputAsked(r)
	if err != nil {
		return err
	}
	return c.serveOutput(x, r, r.PathValue("task_id"), index, variant)
}

// serveOutput serves an output of a task.
func (c content) serveOutput(x *edge.Request, r *http.Request, id string, index int, variant string) error {
	task, err := c.tasks.Find(r.Context(), id, x.Caller.ID)
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
	return c.send(x, r, task, output)
}

// ServeContent serves the output of a task that the query selects, without a check of permissions: the caller has made it.
func (s *Service) ServeContent(x *edge.Request, r *http.Request, task tasks.Task) error {
	index, variant, err := outputAsked(r)
	if err != nil {
		return err
	}
	output, err := outputOf(task, index, variant)
	if err != nil {
		return err
	}
	return s.content.send(x, r, task, output)
}

// output is an output or a variant of it.
type output struct {
	object, contentType, sha256 string
	size                        int64
}

// outputOf returns an output of a task, or a variant of it; NotFound if there is none.
func outputOf(task tasks.Task, index int, variant string) (output, error) {
	if task.State != workflows.Completed || expired(task) || index >= len(task.Outputs) {
		return output{}, noContent()
	}
	whole := task.Outputs[index]
	if variant == "" {
		return output{whole.Object, contentType(whole.ContentType, variant), whole.SHA256, whole.Size}, nil
	}
	var found output
	for _, picture := range whole.Variants {
		if picture.Name == variant {
			found = output{picture.Object, contentType(picture.ContentType, variant), picture.SHA256, picture.Size}
		}
	}
	if found.object == "" {
		return output{}, noContent()
	}
	return found, nil
}

// send serves an output.
func (c content) send(x *edge.Request, r *http.Request, task tasks.Task, of output) error {
	header := x.Header()
	header.Set("Content-Type", of.contentType)
	header.Set("Etag", `"`+of.sha256+`"`)
	object := &outputReader{ctx: r.Context(), archive: c.archive, key: of.object, size: of.size}
	defer object.close()
	late := &lateWriter{Writer: x.Paced(), x: x}
	keepRange(r.Header)
	http.ServeContent(late, r, "", task.CompletedAt, object)
	return late.finish(r, object)
}

// contentType returns the content type of an output, or of a variant of it. The vendor's type is used only if it is a video or a picture: no
// page or script of a vendor may be served from this server's address.
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

// maxRanges bounds the ranges of one request. Each is a request to the archive; players use one.
const maxRanges = 16

// keepRange removes a Range header that RFC 9110 permits a server to ignore: one with another unit than bytes, which http.ServeContent
// refuses, or with more than maxRanges ranges.
func keepRange(header http.Header) {
	unit, set, found := strings.Cut(header.Get("Range"), "=")
	if found && strings.EqualFold(unit, "bytes") && strings.Count(set, ",") < maxRanges {
		header.Set("Range", "bytes="+set) // http.ServeContent is case-sensitive
		return
	}
	header.Del("Range")
}

// outputAsked reads the query of a content request: the index of the output, and the variant of it, "" for the video itself.
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

// outputReader reads an object of known size. It opens the object at the first read, so a HEAD does not access the archive.
type outputReader struct {
	ctx     context.Context //nolint:containedctx // it lives within one request, as http.Request's own
	archive Archive
	key     string
	size    int64
	at      int64
	object  io.ReadSeekCloser
	err     error // the first error of the archive
}

// Seek implements io.Seeker.
func (o *outputReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.at
	case io.SeekEnd:
		offset += o.size
	}
	if offset < 0 {
		return 0, errors.New("seek before the start")
	}
	if offset != o.at && o.object != nil {
		if _, err := o.object.Seek(offset, io.SeekStart); err != nil {
			o.err = err
			return 0, err
		}
	}
	o.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (o *outputReader) Read(p []byte) (int, error) {
	if o.at >= o.size {
		return 0, io.EOF
	}
	if err := o.ctx.Err(); err != nil { // buffered bytes must not be sent after the permission has ended
		o.err = err
		return 0, err
	}
	if o.object == nil {
		if err := o.open(); err != nil {
			o.err = err
			return 0, err
		}
	}
	n, err := o.object.Read(p)
	o.at += int64(n)
	switch {
	case err == io.EOF && o.at < o.size: //nolint:errorlint // io.Reader's own contract
		o.err = io.ErrUnexpectedEOF
		return n, o.err
	case err != nil && err != io.EOF: //nolint:errorlint // as above
		o.err = err
	}
	return n, err
}

func (o *outputReader) open() error {
	object, err := o.archive.Open(o.ctx, o.key)
	if err != nil {
		return err
	}
	o.object = object
	if o.at == 0 {
		return nil
	}
	_, err = object.Seek(o.at, io.SeekStart)
	return err
}

func (o *outputReader) close() {
	if o.object != nil {
		_ = o.object.Close() // it was only read
	}
}

// lateWriter sends the header with the first byte, so that a fault can still be sent if the archive fails before it, or if the range does
// not exist.
type lateWriter struct {
	*edge.Writer
	x      *edge.Request
	status int
}

// Header implements http.ResponseWriter.
func (w *lateWriter) Header() http.Header { return w.x.Header() }

// WriteHeader implements http.ResponseWriter.
func (w *lateWriter) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter. It drops the text that http.ServeContent writes for an error.
func (w *lateWriter) Write(p []byte) (int, error) {
	if w.status >= http.StatusBadRequest {
		return len(p), nil
	}
	w.send()
	return w.Writer.Write(p)
}

func (w *lateWriter) send() {
	if w.x.Status() == 0 {
		w.x.WriteHeader(max(w.status, http.StatusOK))
	}
}

// finish ends the answer after http.ServeContent.
func (w *lateWriter) finish(r *http.Request, content *outputReader) error {
	switch {
	case r.Context().Err() != nil:
		fault := providers.AsFault(context.Cause(r.Context()))
		if w.x.Status() == 0 {
			return w.refuse(fault)
		}
		return fault
	case w.x.Status() == 0 && content.err != nil:
		return w.refuse(archiveFault(content.err))
	case w.x.Status() == 0 && w.status == http.StatusRequestedRangeNotSatisfiable:
		fault := providers.InvalidField("Range", "The range does not exist: the video has %d bytes.", content.size)
		w.Header().Set("Content-Range", "bytes */"+strconv.FormatInt(content.size, 10))
		w.x.FailWith(w.status, fault)
		return nil
	case w.x.Status() == 0 && w.status == http.StatusPreconditionFailed:
		w.x.FailWith(w.status, providers.InvalidField("", "The video is not the one the request's conditions name."))
		return nil
	case w.x.Status() == 0 && w.status >= http.StatusInternalServerError:
		return w.refuse(providers.Faultf(providers.Internal, "The video cannot be read."))
	case content.err != nil:
		w.x.Fault = archiveFault(content.err)
		panic(http.ErrAbortHandler) // the client must notice that the body is incomplete
	}
	w.send()
	return nil
}

// refuse removes the headers of the video.
func (w *lateWriter) refuse(fault *providers.Fault) error {
	for _, name := range [...]string{"Etag", "Last-Modified", "Accept-Ranges", "Content-Range"} {
		w.Header().Del(name)
	}
	return fault
}

func archiveFault(err error) *providers.Fault {
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return noContent()
	case errors.Is(err, storage.ErrUnavailable):
		return &providers.Fault{
			Kind: providers.Overloaded, Message: "The archive is not available at the moment.", RetryAfter: 2 * time.Second, Err: err,
		}
	default:
		return providers.AsFault(err)
	}
}
