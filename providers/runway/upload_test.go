package runway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/runway"
	"modelrelay/providers/upstream"
)

// largeImage is larger than a data URI may be.
func largeImage() providers.Media {
	data := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 4_000_000)...)
	return providers.Media{
		Object: "tasks/video_1/inputs/0", Name: "../secret name.png", ContentType: "image/png", Size: int64(len(data)),
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
	}
}

// TestUpload: an image that is too large for a data URI goes to the store that the vendor names, without the key, and the create
// names it. Shapes: @runwayml/sdk src/resources/uploads.ts.
func TestUpload(t *testing.T) {
	t.Parallel()
	var stored, asked, created string
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.ContentLength < 4_000_000 {
			t.Errorf("got authorization %q, length %d", r.Header.Get("Authorization"), r.ContentLength)
		}
		form, err := r.MultipartReader()
		if err != nil {
			t.Error(err)
			return
		}
		for part, err := form.NextPart(); err == nil; part, err = form.NextPart() {
			n := 0
			if part.FormName() == "file" {
				length, _ := io.Copy(io.Discard, part)
				n = int(length)
			}
			stored += part.FormName() + " " + part.FileName() + " " + part.Header.Get("Content-Type") + ";"
			if part.FormName() == "file" && n != 4_000_008 {
				t.Errorf("got %d bytes", n)
			}
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(store.Close)
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.Method + " " + r.URL.Path {
		case "POST /v1/uploads":
			asked = string(body)
			_ = json.NewEncoder(w).Encode(map[string]any{
				"uploadUrl": strings.Replace(store.URL, "127.0.0.1", "localhost", 1) + "/bucket", "runwayUri": "runway://1",
				"fields": map[string]string{"policy": "p", "key": "k"},
			})
		case "POST /v1/image_to_video":
			created = string(body)
			_, _ = io.WriteString(w, `{"id":"1"}`)
		default:
			t.Errorf("got %s %s", r.Method, r.URL.Path)
		}
	}))
	t.Cleanup(vendor.Close)
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	to := providers.Target{Channel: providers.Channel{BaseURL: vendor.URL, AllowPrivateResults: true}, Key: "k", Model: "gen4_turbo"}
	req := providers.VideoRequest{Inputs: []providers.Media{largeImage()}}
	if _, err := runway.NewVideos(client).Submit(t.Context(), to, req); err != nil {
		t.Fatal(err)
	}
	if asked != `{"filename":"input.png","type":"ephemeral"}` || stored != "key  ;policy  ;file input.png image/png;" ||
		created != `{"model":"gen4_turbo","promptImage":[{"position":"first","uri":"runway://1"}],"ratio":"1280:720"}` {
		t.Errorf("got upload %s, form %q, create %s", asked, stored, created)
	}

	// A link that leads inside is not followed, and nothing is paid.
	created, stored = "", ""
	to.Channel.AllowPrivateResults = false
	_, err := runway.NewVideos(client).Submit(t.Context(), to, req)
	if fault := providers.AsFault(err); fault == nil || fault.Accepted != providers.NotAccepted || created != "" || stored != "" {
		t.Errorf("got %v, stored %q, created %q", err, stored, created)
	}
}

// TestUploadFails: whatever goes wrong with an upload, no task was made.
func TestUploadFails(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"the vendor is broken": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "x", http.StatusBadGateway) },
		"garbage":              func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"no address":           func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"fields":{}}`) },
		"the store refuses": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/uploads" {
				http.Error(w, "<Error/>", http.StatusForbidden)
				return
			}
			_, _ = io.WriteString(w, `{"uploadUrl":"http://`+r.Host+`/bucket","runwayUri":"runway://1","fields":{}}`)
		},
		"the store leads on": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/uploads" {
				http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
				return
			}
			_, _ = io.WriteString(w, `{"uploadUrl":"http://`+r.Host+`/bucket","runwayUri":"runway://1","fields":{}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if r.URL.Path == "/v1/image_to_video" || r.URL.Path == "/elsewhere" {
					t.Errorf("got %s", r.URL.Path)
				}
				answer(w, r)
			}))
			t.Cleanup(server.Close)
			client := upstream.NewClient(nil)
			t.Cleanup(client.CloseIdleConnections)
			to := providers.Target{Channel: providers.Channel{BaseURL: server.URL}, Key: "k", Model: "gen4_turbo"}
			_, err := runway.NewVideos(client).Submit(t.Context(), to, providers.VideoRequest{Inputs: []providers.Media{largeImage()}})
			if fault := providers.AsFault(err); fault == nil || fault.Accepted != providers.NotAccepted || !fault.Retryable() {
				t.Errorf("got %v", err)
			}
		})
	}
}
