package upstream_test

import (
	"encoding/json"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// TestHostedFields: the operator's names of a model's fields replace those that most models have.
func TestHostedFields(t *testing.T) {
	t.Parallel()
	on, seed := true, int64(7)
	link := func(role providers.InputRole) providers.Media {
		return providers.Media{Role: role, URL: "https://h/" + string(role)}
	}
	open := upstream.Hosted{
		Model: providers.VideoModel{
			Seconds: providers.AnyWord(), AspectRatios: providers.AnyWord(), Resolutions: providers.AnyWord(), Audio: providers.AudioOption,
			Seed: true, Inputs: []providers.VideoInput{{Role: providers.FirstFrame}},
		},
		Inputs: map[providers.InputRole]string{providers.FirstFrame: "image_url"}, Length: providers.AsText,
	}
	for _, tc := range []struct {
		name   string
		fields providers.VideoFields
		req    providers.VideoRequest
		want   string // the members, or the field of a refusal
	}{
		{
			"other names",
			providers.VideoFields{
				"prompt": {Name: "text"}, "image": {Name: "start_image_url"}, "last_image": {Name: "tail"},
				"seconds":    {Name: "len", As: providers.AsUnit},
				"resolution": {Name: "quality", As: providers.AsUpper}, "seed": {As: providers.AsText}, "fps": {Name: "rate"},
				"generate_audio": {Name: "sound"},
			},
			providers.VideoRequest{
				Prompt: "p", Seconds: "8", Resolution: "768p", Seed: &seed, FPS: 24, GenerateAudio: &on,
				Inputs: []providers.Media{link(providers.FirstFrame), link(providers.LastFrame)},
			},
			`{"len":"8s","quality":"768P","rate":24,"seed":"7","sound":true,"start_image_url":"https://h/","tail":"https://h/last_frame","text":"p"}`,
		},
		{
			"a size with a star",
			providers.VideoFields{"size": {As: providers.AsStar}, "aspect_ratio": {Absent: true}, "resolution": {Absent: true}},
			providers.VideoRequest{Width: 1280, Height: 720, Seconds: "5"},
			`{"duration":"5","size":"1280*720"}`,
		},
		{
			"inputs that share a list",
			providers.VideoFields{"image": {Name: "urls", As: providers.AsList}, "reference_images": {Name: "urls"}},
			providers.VideoRequest{Inputs: []providers.Media{link(providers.FirstFrame), link(providers.Reference)}},
			`{"urls":["https://h/","https://h/reference"]}`,
		},
		{
			"one reference alone",
			providers.VideoFields{"reference_images": {Name: "subject", As: providers.AsOne}},
			providers.VideoRequest{Inputs: []providers.Media{link(providers.Reference)}},
			`{"subject":"https://h/reference"}`,
		},
		{
			"one reference of two",
			providers.VideoFields{"reference_images": {Name: "subject", As: providers.AsOne}},
			providers.VideoRequest{Inputs: []providers.Media{link(providers.Reference), link(providers.Reference)}},
			"reference_images",
		},
		{"no such field", providers.VideoFields{"aspect_ratio": {Absent: true}}, providers.VideoRequest{AspectRatio: "16:9"}, "aspect_ratio"},
		{
			"an unnamed field", nil,
			providers.VideoRequest{Inputs: []providers.Media{link(providers.FirstFrame), link(providers.LastFrame)}},
			"last_image",
		},
	} {
		d := open.Draft(t.Context(), tc.req, tc.fields)
		err := d.Err()
		if fault := providers.AsFault(err); err != nil {
			if fault.Param != tc.want || fault.Accepted != providers.NotAccepted {
				t.Errorf("%s: got %v, want %s", tc.name, err, tc.want)
			}
			continue
		}
		if got, err := json.Marshal(d.Members); err != nil || string(got) != tc.want {
			t.Errorf("%s: got %s, %v, want %s", tc.name, got, err, tc.want)
		}
	}
}
