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

// Upload brings an object of the archive to a link that the vendor has named for it: as a form, the vendor's own fields first,
// then the file, which is streamed. No key goes along. Beyond the channel's own origin only public addresses are dialled, as for
// results. Every failure is before a job was paid.
func (j *Jobs) Upload(ctx context.Context, to providers.Target, link string, fields map[string]string, name string, input providers.Media) error {
	post, own, err := j.results.Link(ctx, to.Channel, link)
	if err != nil {
		return Unpaid(err)
	}
	client, err := j.results.client(to.Channel)
	if err != nil {
		return Unpaid(err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the file is there once
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
		return &providers.Fault{Kind: providers.Overloaded, Message: "The task's input cannot be read from the archive now.", Accepted: providers.NotAccepted, Err: err}
	}
	defer file.Close()
	post.Method = http.MethodPost
	post.Body = io.NopCloser(io.MultiReader(bytes.NewReader(form.Bytes()[:head]), io.LimitReader(file, input.Size), bytes.NewReader(form.Bytes()[head:])))
	post.ContentLength = int64(form.Len()) + input.Size // a store takes no form of unknown length
	post.Header.Set("Content-Type", writer.FormDataContentType())
	resp, err := Send(client, post)
	if err != nil {
		fault := providers.AsFault(Unpaid(afar(err, own)))
		if fault.Upstream != nil { // the store's word, which says nothing of the key
			return &providers.Fault{Kind: providers.Upstream, Message: "The upstream's store did not take the input.", Accepted: providers.NotAccepted, Err: fault}
		}
		return fault
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, MaxErrorBody)) // the status has said it
	return resp.Body.Close()
}

// beginFile writes a form up to the bytes of its file.
func beginFile(form *multipart.Writer, fields map[string]string, name, kind string) error {
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if err := form.WriteField(field, fields[field]); err != nil {
			return err
		}
	}
	_, err := filePart(form, "file", name, kind)
	return err
}

// filePart begins a file of a form.
func filePart(form *multipart.Writer, field, name, kind string) (io.Writer, error) {
	// A type that is none, or that would end its header line, is the client's word about its file and nothing more.
	if _, _, err := mime.ParseMediaType(kind); err != nil {
		kind = "application/octet-stream"
	}
	header := make(textproto.MIMEHeader)
	header.Set("Content-Disposition", multipart.FileContentDisposition(field, name))
	header.Set("Content-Type", kind)
	return form.CreatePart(header)
}

// WriteFile writes an input as a file of a form, under the field's name where it has none of its own.
func WriteFile(ctx context.Context, form *multipart.Writer, field string, input providers.Media) error {
	part, err := filePart(form, field, cmp.Or(input.Name, field), input.ContentType)
	if err != nil {
		return providers.Unwritable(err)
	}
	return input.CopyTo(ctx, part)
}

// Unpaid is the fault of what comes before a paid submit.
func Unpaid(err error) error {
	fault := *providers.AsFault(err)
	fault.Accepted = providers.NotAccepted
	return &fault
}
