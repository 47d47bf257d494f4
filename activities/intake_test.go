package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/archive"
)

// repeats is a memory of functions.
type repeats struct {
	activities.Repeats // nil: what is not below panics

	recall func(ctx context.Context, tokenID, requestHash string) (string, error)
}

func (r repeats) Recall(ctx context.Context, tokenID, requestHash string) (string, error) {
	return r.recall(ctx, tokenID, requestHash)
}

func TestIntakeUpload(t *testing.T) {
	t.Parallel()
	var got archive.Object
	var data []byte
	intake := activities.Intake{Objects: objects{put: func(_ context.Context, key string, r io.Reader, size int64, opts archive.PutOptions) (archive.Object, error) {
		got = archive.Object{Key: key, Size: size, ContentType: opts.ContentType}
		var err error
		data, err = io.ReadAll(r)
		return got, errors.Join(err, storage.ErrUnavailable)
	}}}
	err := intake.Upload(t.Context(), "tasks/video_1/inputs/0", "image/png", []byte("\x89PNG"))
	if !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if want := (archive.Object{Key: "tasks/video_1/inputs/0", Size: 4, ContentType: "image/png"}); !reflect.DeepEqual(got, want) || string(data) != "\x89PNG" {
		t.Errorf("got %+v with %q", got, data)
	}
}

func TestIntakeRequest(t *testing.T) {
	t.Parallel()
	kept := make(map[string][]byte)
	intake := activities.Intake{Objects: objects{
		putJSON: func(_ context.Context, key string, doc any) error {
			var err error
			kept[key], err = json.Marshal(doc)
			return err
		},
		getJSON: func(_ context.Context, key string, into any) error {
			doc, ok := kept[key]
			if !ok {
				return storage.ErrNotFound
			}
			return json.Unmarshal(doc, into)
		},
	}}
	seed := int64(1) << 62
	want := providers.VideoRequest{
		Model: "sora-2", Prompt: "a cat", Seed: &seed, Extra: json.RawMessage(`{"x":1.50}`),
		Images: []providers.Media{{Object: "tasks/video_1/inputs/0", Name: "ä.png", SHA256: "00"}},
	}
	sent := want
	sent.Images = []providers.Media{want.Images[0]}
	sent.Images[0].Data = []byte("never kept here")
	if err := intake.PutRequest(t.Context(), "tasks/video_1/request.json", sent); err != nil {
		t.Fatal(err)
	}
	got, err := intake.Request(t.Context(), "tasks/video_1/request.json")
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := intake.Request(t.Context(), "another"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestIntakeRepeats(t *testing.T) {
	t.Parallel()
	kept := make(map[[2]string]string)
	intake := activities.Intake{Repeats: repeats{
		recall: func(_ context.Context, tokenID, hash string) (string, error) {
			if hash == "away" {
				return "", storage.ErrUnavailable
			}
			if id, ok := kept[[2]string{tokenID, hash}]; ok {
				return id, nil
			}
			return "", fmt.Errorf("recall: %w", storage.ErrNotFound)
		},
	}}
	kept[[2]string{"demo", "hash"}] = "video_1"
	for _, tc := range []struct {
		token, hash, want string
		err               error
	}{
		{"demo", "hash", "video_1", nil},
		{"demo", "other", "", nil},
		{"other", "hash", "", nil},
		{"demo", "away", "", storage.ErrUnavailable},
	} {
		got, err := intake.Recall(t.Context(), tc.token, tc.hash)
		if got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%s, %s: got %q, %v, want %q, %v", tc.token, tc.hash, got, err, tc.want, tc.err)
		}
	}
}
