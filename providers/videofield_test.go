package providers_test

import (
	"reflect"
	"strings"
	"testing"

	"modelrelay/providers"
)

// TestFieldsOpen: a field that the operator names is one that the model has, and an absent one is none.
func TestFieldsOpen(t *testing.T) {
	t.Parallel()
	known := providers.VideoModel{
		Seconds: []string{"5"}, AspectRatios: []string{"16:9"}, Negative: true, Audio: providers.AudioOption, FPS: 24,
		Inputs: []providers.VideoInput{{Role: providers.FirstFrame, Needed: true}, {Role: providers.SourceAudio}},
	}
	got := providers.VideoFields{
		"seconds": {Name: "length"}, "aspect_ratio": {Absent: true}, "size": {As: providers.AsStar}, "resolution": {Name: "quality"},
		"negative_prompt": {Absent: true}, "seed": {Name: "noise"}, "generate_audio": {Absent: true}, "fps": {Name: "rate"},
		"image": {As: providers.AsList}, "reference_images": {Name: "subjects"}, "audio": {Absent: true}, "extend": {Name: "clip"},
	}.Open(known)
	want := providers.VideoModel{
		Seconds: []string{"5"}, Sizes: providers.AnyWord(), Resolutions: providers.AnyWord(), Seed: true, FPS: providers.AnyFPS,
		Inputs: []providers.VideoInput{
			{Role: providers.FirstFrame, Needed: true},
			{Role: providers.Reference, Max: 9},
			{Role: providers.ExtendVideo},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if len(known.Inputs) != 2 || known.Inputs[1].Role != providers.SourceAudio {
		t.Errorf("the vendor's own table has changed: %+v", known.Inputs)
	}
	if one := (providers.VideoFields{"reference_images": {
		Name: "subject",
		As:   providers.AsOne,
	}}).Open(providers.VideoModel{}); len(one.Inputs) != 1 || one.Inputs[0].Max != 1 {
		t.Errorf("one reference: got %+v", one.Inputs)
	}
}

// TestFieldsCheck: two fields share a name where both are lists of inputs.
func TestFieldsCheck(t *testing.T) {
	t.Parallel()
	shared := providers.VideoFields{"image": {Name: "urls", As: providers.AsList}, "reference_images": {Name: "urls"}}
	for name := range shared {
		if err := shared.Check(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	shared["image"] = providers.VideoField{Name: "urls"}
	if err := shared.Check("reference_images"); err == nil || !strings.Contains(err.Error(), "has the name of image") {
		t.Errorf("got %v", err)
	}
}
