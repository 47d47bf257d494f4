package e2e_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"testing"

	"modelrelay/dev/e2e/stack"
)

// TestImageTasks: an image call at the path with /async answers with a task, whose address returns the images of the same call.
func TestImageTasks(t *testing.T) {
	t.Parallel()
	g := newFormats(t)
	calls := backgroundOperations(t)
	for _, name := range []string{"/v1/images/generations gpt-image-1", "an edited image"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, found := calls[name]
			if !found {
				t.Fatal("no such operation")
			}
			sync := g.Call(t, r)
			r.Path += "/async"
			created := g.Call(t, r)
			var task struct {
				ID     string          `json:"id"`
				Status string          `json:"status"`
				Result json.RawMessage `json:"result"`
			}
			if err := json.Unmarshal(created.Body, &task); err != nil || created.Status != http.StatusAccepted || task.Status != "processing" {
				t.Fatalf("created %d %s", created.Status, created.Body)
			}
			awaitBackground(t, g, "", task.ID)
			read := g.Call(t, stack.Request{Path: created.Header.Get("Location")})
			if err := json.Unmarshal(read.Body, &task); err != nil || read.Status != http.StatusOK || task.Status != "completed" {
				t.Fatalf("read %d %.500s", read.Status, read.Body)
			}
			var want struct {
				Created int64           `json:"created"`
				Data    json.RawMessage `json:"data"`
			}
			if err := json.Unmarshal(sync.Body, &want); err != nil {
				t.Fatal(err)
			}
			images, _ := json.Marshal(want) // it has no value that cannot be encoded
			if got := comparable(task.Result); !reflect.DeepEqual(got, comparable(images)) {
				t.Errorf("got %.500s\nwant %.500s", task.Result, images)
			}
		})
	}
}
