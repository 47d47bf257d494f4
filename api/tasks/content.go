package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/archive"
)

// Archive reads the objects of tasks.
type Archive interface {
	// Open returns a reader of an object, which the caller closes, or storage.ErrNotFound or storage.ErrUnavailable.
	Open(ctx context.Context, key string) (*archive.Reader, error)
}

// Object is an archived result.
type Object struct {
	Key, ContentType, SHA256 string
	Size                     int64
	Modified                 time.Time
	// Noun is its name in messages. Gone is the fault if the archive does not have the object.
	Noun string
	Gone *providers.Fault
	// Status is the status of the whole object; 0: 200.
	Status int
}

// ServeObject serves an object with its ETag. Ranges and conditions work as in RFC 9110. The caller has checked the permissions.
func ServeObject(x *edge.Request, r *http.Request, from Archive, of Object) error {
	reader, err := from.Open(r.Context(), of.Key)
	if err != nil {
		return of.fault(cmp.Or(context.Cause(r.Context()), err))
	}
	defer func() { _ = reader.Close() }() // it was only read
	if size := reader.Object().Size; size != of.Size {
		return fmt.Errorf("the archive has %d bytes of %s, not %d", size, of.Key, of.Size)
	}
	header := x.Header()
	header.Set("Content-Type", of.ContentType)
	header.Set("Etag", `"`+of.SHA256+`"`)
	object := &objectReader{Reader: reader, ctx: r.Context()}
	late := &lateWriter{Writer: x.Paced(), x: x, of: of}
	keepRange(r.Header)
	http.ServeContent(late, r, "", of.Modified, object)
	return late.finish(r, object)
}

// maxRanges bounds the ranges of one request. Each is a request to the archive; players use one.
const maxRanges = 16

// keepRange removes a Range header that RFC 9110 permits to ignore: with a unit other than bytes, or with more than maxRanges ranges.
func keepRange(header http.Header) {
	unit, set, found := strings.Cut(header.Get("Range"), "=")
	if found && strings.EqualFold(unit, "bytes") && strings.Count(set, ",") < maxRanges {
		header.Set("Range", "bytes="+set) // http.ServeContent is case-sensitive
		return
	}
	header.Del("Range")
}

// objectReader stops with the context of the request, and records the error of a reader.
type objectReader struct {
	*archive.Reader
	ctx context.Context //nolint:containedctx // the reader is used within one request
	err error           // the last error
}

// Read implements io.Reader.
func (o *objectReader) Read(p []byte) (n int, err error) {
	if err = o.ctx.Err(); err == nil { // buffered bytes must not be sent after the permission has ended
		n, err = o.Reader.Read(p)
	}
	if err != nil && err != io.EOF { //nolint:errorlint // the contract of io.Reader
		o.err = err
	}
	return n, err
}

// lateWriter sends the header with the first byte, so that a fault of the archive or the range can replace it.
type lateWriter struct {
	*edge.Writer
	x      *edge.Request
	of     Object
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
		status := max(w.status, http.StatusOK)
		if status == http.StatusOK && w.of.Status != 0 {
			status = w.of.Status
		}
		w.x.WriteHeader(status)
	}
}

func (w *lateWriter) finish(r *http.Request, content *objectReader) error {
	switch {
	case r.Context().Err() != nil:
		fault := providers.AsFault(context.Cause(r.Context()))
		if w.x.Status() == 0 {
			return w.refuse(fault)
		}
		return fault
	case w.x.Status() == 0 && content.err != nil:
		return w.refuse(w.of.fault(content.err))
	case w.x.Status() == 0 && w.status == http.StatusRequestedRangeNotSatisfiable:
		fault := providers.InvalidField("Range", "The range does not exist: the %s has %d bytes.", w.of.Noun, content.Object().Size)
		w.Header().Set("Content-Range", "bytes */"+strconv.FormatInt(content.Object().Size, 10))
		w.x.FailWith(w.status, fault)
		return nil
	case w.x.Status() == 0 && w.status == http.StatusPreconditionFailed:
		w.x.FailWith(w.status, providers.InvalidField("", "The %s does not match the request's conditions.", w.of.Noun))
		return nil
	case w.x.Status() == 0 && w.status >= http.StatusInternalServerError:
		return w.refuse(providers.Faultf(providers.Internal, "The %s cannot be read.", w.of.Noun))
	case content.err != nil:
		w.x.Fault = w.of.fault(content.err)
		panic(http.ErrAbortHandler) // the client must detect the incomplete body
	}
	w.send()
	return nil
}

// refuse removes the headers of the object.
func (w *lateWriter) refuse(fault *providers.Fault) error {
	for _, name := range [...]string{"Etag", "Last-Modified", "Accept-Ranges", "Content-Range"} {
		w.Header().Del(name)
	}
	return fault
}

func (o Object) fault(err error) *providers.Fault {
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return o.Gone
	case errors.Is(err, storage.ErrUnavailable):
		return &providers.Fault{
			Kind: providers.Overloaded, Message: "The archive is not available at the moment.", RetryAfter: 2 * time.Second, Err: err,
		}
	default:
		return providers.AsFault(err)
	}
}
