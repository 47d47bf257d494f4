package tasks_test

import (
	"strings"
	"testing"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage/storagetest"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// fakeRemixer is an adapter that can remix; nothing calls it.
type fakeRemixer struct {
	providers.VideoAdapter
	providers.Remixer
}

// TestRemixRepeated: after its source video is deleted, the repeat of a remix returns the first task and creates no other. This
// holds for an idempotency key and for an SDK's own retry. If there is no first task, the repeat is refused with "no such video".
func TestRemixRepeated(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]func(in *tasks.Create, repeat bool){
		"key":      func(in *tasks.Create, _ bool) { in.IdempotencyKey = "remix" },
		"SDK":      func(in *tasks.Create, repeat bool) { in.IdempotencyKey, in.Repeat = "", repeat },
		"no words": func(in *tasks.Create, _ bool) { in.IdempotencyKey = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := &fakeEngine{}
			opts := options(&fakeArchive{docs: make(map[string][]byte)}, storagetest.Redis(t))
			opts.Catalog = providers.Catalog{"v": {Video: fakeRemixer{}}}
			over := func() *tasks.Client { return tasks.NewClient(engine, opts) }
			service := over()
			source := mustCreate(t, service, create(providers.VideoRequest{Model: "sora-2", Prompt: "a cat", Seconds: "8", Size: "720x1280"}))
			engine.endAs(t, source.ID, workflows.Result{
				State:  workflows.Completed,
				Ending: workflows.Ending{Job: &activities.Job{Assignment: activities.Assignment{Vendor: "v"}}},
			})
			first := create(providers.VideoRequest{
				Model: "sora-2", Prompt: "a dog", RemixOf: source.ID, Seconds: "8", Size: "720x1280", Width: 720,
				Height: 1280,
			})
			how(&first, false)
			made := mustCreate(t, service, first)
			engine.forget(source.ID)
			service = over()                                                              // another process: it has not read the source
			repeat := create(providers.VideoRequest{Prompt: "a dog", RemixOf: source.ID}) // only what the caller sends
			how(&repeat, true)
			late := first
			how(&late, true)
			for what, ask := range map[string]func() (tasks.Task, error){
				"repeated": func() (tasks.Task, error) { return service.Repeated(t.Context(), repeat) },
				"created":  func() (tasks.Task, error) { return service.Create(t.Context(), late) },
			} {
				got, err := ask()
				if name == "no words" {
					if kindOf(err) != providers.NotFound {
						t.Errorf("%s: got %+v, %v, want not found", what, got, err)
					}
				} else if err != nil || got.ID != made.ID || got.Request.Seconds != "8" {
					t.Errorf("%s: got %+v, %v, want %s", what, got, err, made.ID)
				}
			}
			repeat.Request.Prompt = "a bird"
			want := map[string]providers.Kind{"key": providers.Mismatch}[name]
			if want == "" {
				want = providers.NotFound
			}
			if got, err := service.Repeated(t.Context(), repeat); kindOf(err) != want {
				t.Errorf("another prompt: got %+v, %v, want %s", got, err, want)
			}
			if engine.count() != 1 {
				t.Errorf("%d tasks, want the remix alone", engine.count())
			}
		})
	}
}

// TestEditRepeated: the repeat of an edit finds its task by its key when its source is gone, whatever is known of that still.
func TestEditRepeated(t *testing.T) {
	t.Parallel()
	engine := &fakeEngine{}
	service := tasks.NewClient(engine, options(&fakeArchive{docs: make(map[string][]byte)}, storagetest.Redis(t)))
	source := "video_" + strings.Repeat("0", 26)
	edit := func(model string, input providers.Media) tasks.Create {
		input.Role, input.From = providers.SourceVideo, source
		return create(providers.VideoRequest{Model: model, Prompt: "a dog", Inputs: []providers.Media{input}})
	}
	made := mustCreate(t, service, edit("cut", providers.Media{URL: "https://h/made.mp4", ContentType: "video/mp4", Size: 5, SHA256: "abc"}))
	for name, repeat := range map[string]tasks.Create{
		"all":          edit("cut", providers.Media{URL: "https://h/made.mp4", ContentType: "video/mp4", Size: 5, SHA256: "abc"}),
		"source alone": edit("cut", providers.Media{}), "no model": edit("", providers.Media{}),
	} {
		if got, err := service.Repeated(t.Context(), repeat); err != nil || got.ID != made.ID {
			t.Errorf("%s: got %+v, %v, want %s", name, got, err, made.ID)
		}
	}
	other := edit("", providers.Media{})
	other.Request.Inputs[0].From += "#1"
	for name, repeat := range map[string]tasks.Create{"another model": edit("other", providers.Media{}), "another video": other} {
		if got, err := service.Repeated(t.Context(), repeat); kindOf(err) != providers.Mismatch {
			t.Errorf("%s: got %+v, %v, want a mismatch", name, got, err)
		}
	}
}
