package runway

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/upstream"
)

// place returns the location of an input: its link, its bytes in a data URI, or the URL of an upload, which is free and stored for a day.
func (v *Videos) place(ctx context.Context, to providers.Target, input providers.Media) (string, error) {
	if input.URL != "" || input.Size <= maxData {
		return upstream.InputText(ctx, input)
	}
	name := "input." + extension(input.ContentType)
	body, err := json.Marshal(map[string]string{"filename": name, "type": "ephemeral"})
	if err != nil {
		return "", providers.Unwritable(err)
	}
	made, err := v.Jobs.Read(ctx, to, upstream.JobRequest{Method: http.MethodPost, Path: "/v1/uploads", Body: body})
	if err != nil {
		return "", upstream.Unpaid(err)
	}
	link, uri := string(made.Get("uploadUrl")), string(made.Get("runwayUri"))
	if link == "" || uri == "" {
		return "", upstream.Unpaid(upstream.BrokenAnswer("an upload without an address", nil))
	}
	fields := make(map[string]string)
	for field, value := range rawjson.Value(made.At("fields")).Members() {
		fields[field.String()] = string(upstream.Doc(value).Get(""))
	}
	return uri, v.Jobs.Upload(ctx, to, link, fields, name, input)
}

func extension(kind string) string {
	switch _, sub, _ := strings.Cut(kind, "/"); sub {
	case "png", "jpeg", "webp", "mp4", "webm", "wav":
		return sub
	case "quicktime":
		return "mov"
	case "mpeg":
		return "mp3"
	}
	return "bin"
}
