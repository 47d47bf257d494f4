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

// uploads uploads the request's inputs to the vendor and adds their ids to the plan. After any error, no video was paid.
func (v *Videos) uploads(ctx context.Context, to providers.Target, req providers.VideoRequest, plan *plan) error {
	for _, input := range req.Inputs {
		id, err := v.upload(ctx, to, input)
		if err != nil {
			return upstream.Unpaid(err)
		}
		plan.put(input.Role, id)
	}
	return nil
}

// upload uploads a picture or a video and returns its id.
func (v *Videos) upload(ctx context.Context, to providers.Target, input providers.Media) (json.Number, error) {
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
	made, err := v.do(ctx, to, upstream.JobRequest{
		Method: http.MethodPost, Path: path, Body: body.Bytes(), Header: http.Header{"Content-Type": {form.FormDataContentType()}},
	}, true)
	id := made.Get("img_id", "media_id")
	if err == nil && id.Number() == "" {
		err = upstream.BrokenAnswer("an upload without an id", nil)
	}
	return json.Number(id), err
}
