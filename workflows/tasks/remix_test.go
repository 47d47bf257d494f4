package workflows_test

import (
	"testing"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/taskindex"
	"modelrelay/workflows"
)

// remixer is an adapter that can remix; nothing calls it.
type remixer struct {
	providers.VideoAdapter
	providers.Remixer
}

// TestRemixRepeated: the repeat of a remix finds its task when the video that it was made of is gone, by its key and as an
// SDK's own retry, and makes no other. Without its task it is told that there is no such video.
func TestRemixRepeated(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]func(in *workflows.Create, repeat bool){
		"key":      func(in *workflows.Create, _ bool) { in.IdempotencyKey = "remix" },
		"SDK":      func(in *workflows.Create, repeat bool) { in.IdempotencyKey, in.Repeat = "", repeat },
		"no words": func(in *workflows.Create, _ bool) { in.IdempotencyKey = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := &engine{}
			intake := activities.Intake{Objects: &shelf{docs: make(map[string][]byte)}, Repeats: taskindex.NewRepeats(storagetest.Redis(t))}
			over := func() *workflows.Client {
				return workflows.NewClient(engine, workflows.ClientOptions{
					TaskQueue: "video", Catalog: providers.Catalog{"v": {Video: remixer{}}}, Intake: intake,
				})
			}
			tasks := over()
			source := mustCreate(t, tasks, create(providers.VideoRequest{Model: "sora-2", Prompt: "a cat", Seconds: "8", Size: "720x1280"}))
			engine.endAs(t, source.ID, workflows.Result{State: workflows.Completed, Job: &activities.Job{Assignment: activities.Assignment{Vendor: "v"}}})
			first := create(providers.VideoRequest{Model: "sora-2", Prompt: "a dog", RemixOf: source.ID, Seconds: "8", Size: "720x1280", Width: 720, Height: 1280})
			how(&first, false)
			made := mustCreate(t, tasks, first)
			engine.forget(source.ID)
			tasks = over()                                                                // another process: it has not read the source
			repeat := create(providers.VideoRequest{Prompt: "a dog", RemixOf: source.ID}) // what the caller says, and no more
			how(&repeat, true)
			late := first
			how(&late, true)
			for what, ask := range map[string]func() (workflows.Task, error){
				"repeated": func() (workflows.Task, error) { return tasks.Repeated(t.Context(), repeat) },
				"created":  func() (workflows.Task, error) { return tasks.Create(t.Context(), late) },
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
			if got, err := tasks.Repeated(t.Context(), repeat); kindOf(err) != want {
				t.Errorf("another prompt: got %+v, %v, want %s", got, err, want)
			}
			if engine.count() != 1 {
				t.Errorf("%d tasks, want the remix alone", engine.count())
			}
		})
	}
}
