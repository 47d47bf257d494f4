package pixverse

import (
	"bytes"
	"context"
	"encoding/json"
	"mime/multipart"
	"net/http"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// upload uploads a picture or a video and returns its id.
func upload(ctx context.Context, jobs *upstream.Jobs, to providers.Target, input providers.Media) (json.Number, error) {
	path, file, link := "/image/upload", "image", "image_url"
	if input.Role == providers.ExtendVideo {
		path, file, link = "/media/upload", "file", "file_url"
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	if input.URL != "" {
		if err := form.WriteField(link, input.URL); err != nil {
			return "", providers.Unwritable(err)
		}
	} else if err := upstream.WriteFile(ctx, form, file, input); err != nil {
		return "", err
	}
	if err := form.Close(); err != nil {
		return "", providers.Unwritable(err)
	}
	made, err := jobs.Read(ctx, to, upstream.JobRequest{
		Method: http.MethodPost, Path: path, Body: body.Bytes(), Header: http.Header{"Content-Type": {form.FormDataContentType()}},
		Paid: true,
	})
	id := made.Get("Resp.img_id", "Resp.media_id")
	if err == nil && id.Number() == "" {
		err = upstream.BrokenAnswer("an upload without an id", nil)
	}
	return json.Number(id), err
}
