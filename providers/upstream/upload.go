package upstream

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"slices"

	"modelrelay/providers"
)

// Upload sends an object of the archive to a link that the vendor has created for it, as a form: the vendor's fields, then the file, which
// is streamed. It sends no key. Beyond the channel's own origin it dials only public addresses. It fails only before a job was paid.
func (j *Jobs) Upload(
	ctx context.Context, to providers.Target, link string, fields map[string]string, name string, input providers.Media,
) error {
	post, own, err := j.results.Link(ctx, to.Channel, link)
	if err != nil {
		return Unpaid(err)
	}
	client, err := j.results.client(to.Channel)
	if err != nil {
		return Unpaid(err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the file can be read once
	var form bytes.Buffer
	writer := multipart.NewWriter(&form)
	if err := beginFile(writer, fields, name, input.ContentType); err != nil {
		return providers.Unwritable(err)
	}
	head := form.Len()
	if err := writer.Close(); err != nil {
		return providers.Unwritable(err)
	}
	file, err := input.Open(ctx)
	if err != nil {
		return &providers.Fault{
			Kind: providers.Overloaded, Message: "The task's input cannot be read from the archive now.",
			Accepted: providers.NotAccepted, Err: err,
		}
	}
	defer file.Close()
	post.Method = http.MethodPost
	post.Body = io.NopCloser(io.MultiReader(bytes.NewReader(form.Bytes()[:head]), io.LimitReader(file, input.Size),
		bytes.NewReader(form.Bytes()[head:])))
	post.ContentLength = int64(form.Len()) + input.Size // stores refuse a form of unknown length
	post.Header.Set("Content-Type", writer.FormDataContentType())
	resp, err := Send(client, post)
	if err != nil {
		fault := providers.AsFault(Unpaid(resultFault(err, own)))
		if fault.Upstream != nil { // the store's error is not about the key
			return &providers.Fault{
				Kind: providers.Upstream, Message: "The upstream's store did not accept the input.",
				Accepted: providers.NotAccepted, Err: fault,
			}
		}
		return fault
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, MaxErrorBody)) // the status is enough
	return resp.Body.Close()
}

func beginFile(form *multipart.Writer, fields map[string]string, name, kind string) error {
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if err := form.WriteField(field, fields[field]); err != nil {
			return err
		}
	}
	_, err := filePart(form, "file", name, kind)
	return err
}

func filePart(form *multipart.Writer, field, name, kind string) (io.Writer, error) {
	// The client's type may be invalid, or may end its header line.
	if _, _, err := mime.ParseMediaType(kind); err != nil {
		kind = "application/octet-stream"
	}
	header := make(textproto.MIMEHeader)
	header.Set("Content-Disposition", multipart.FileContentDisposition(field, name))
	header.Set("Content-Type", kind)
	return form.CreatePart(header)
}

// WriteFile writes an input as a file of a form, with the field's name if it has no name.
func WriteFile(ctx context.Context, form *multipart.Writer, field string, input providers.Media) error {
	part, err := filePart(form, field, cmp.Or(input.Name, field), input.ContentType)
	if err != nil {
		return providers.Unwritable(err)
	}
	return input.CopyTo(ctx, part)
}

// Unpaid returns the fault of a step before a paid submit.
func Unpaid(err error) error {
	fault := *providers.AsFault(err)
	fault.Accepted = providers.NotAccepted
	return &fault
}
