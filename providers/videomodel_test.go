package providers

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestVideoFrame: a request's size in the words of models that know pixels, words or both.
func TestVideoFrame(t *testing.T) {
	t.Parallel()
	words := VideoModel{AspectRatios: []string{"16:9", "9:16", "1:1"}, Resolutions: []string{"480p", "720p", "4k"}}
	sizes := VideoModel{Sizes: []string{"1280x720", "720x1280", "1920x1080"}}
	ratios := VideoModel{AspectRatios: []string{"16:9", "1280:768"}}
	for _, tc := range []struct {
		name  string
		model VideoModel
		shape VideoShape
		want  Frame
		param string
	}{
		{"nothing", words, VideoShape{}, Frame{}, ""},
		{"words", words, VideoShape{AspectRatio: "16:9", Resolution: "720p"}, Frame{AspectRatio: "16:9", Resolution: "720p"}, ""},
		{
			"pixels as words", words,
			VideoShape{Size: "720x1280", Width: 720, Height: 1280},
			Frame{AspectRatio: "9:16", Resolution: "720p"},
			"",
		},
		{"4k", words, VideoShape{Width: 3840, Height: 2160}, Frame{AspectRatio: "16:9", Resolution: "4k"}, ""},
		{"nearly 16:9", words, VideoShape{Width: 854, Height: 480}, Frame{AspectRatio: "16:9", Resolution: "480p"}, ""},
		{
			"pixels with the same resolution in words", words,
			VideoShape{Width: 1280, Height: 720, Resolution: "720p"},
			Frame{AspectRatio: "16:9", Resolution: "720p"},
			"",
		},
		{"pixels with another resolution in words", words, VideoShape{Width: 1280, Height: 720, Resolution: "480p"}, Frame{}, "width"},
		{"pixels in no words", words, VideoShape{Width: 1366, Height: 768}, Frame{}, "width"},
		{"one side", words, VideoShape{Width: 1280}, Frame{}, "width"},
		{"an unknown word", words, VideoShape{Resolution: "8k"}, Frame{}, "resolution"},
		{"a word for a size", words, VideoShape{Size: "wide"}, Frame{}, "size"},
		{"pixels", sizes, VideoShape{Width: 1280, Height: 720}, Frame{Size: "1280x720"}, ""},
		{"other pixels", sizes, VideoShape{Width: 1280, Height: 721}, Frame{}, "width"},
		{"words as pixels", sizes, VideoShape{AspectRatio: "16:9", Resolution: "1080p"}, Frame{Size: "1920x1080"}, ""},
		{"a ratio as pixels", sizes, VideoShape{AspectRatio: "9:16"}, Frame{Size: "720x1280"}, ""},
		{"words without pixels", sizes, VideoShape{AspectRatio: "1:1"}, Frame{}, "aspect_ratio"},
		{"the vendor's own ratio", ratios, VideoShape{Width: 1280, Height: 768}, Frame{AspectRatio: "1280:768"}, ""},
		{"a resolution without words", ratios, VideoShape{Resolution: "720p"}, Frame{}, "resolution"},
		{"nothing is known", VideoModel{}, VideoShape{Width: 1, Height: 1}, Frame{}, "width"},
		{"everything is taken", AnyVideoModel(), VideoShape{Size: "wide", Resolution: "x"}, Frame{Size: "wide", Resolution: "x"}, ""},
		{"all pixels are taken", AnyVideoModel(), VideoShape{Width: 3, Height: 5}, Frame{Size: "3x5"}, ""},
	} {
		got, fault := tc.model.Frame(tc.shape)
		switch {
		case tc.param != "":
			if fault == nil || fault.Param != tc.param || fault.Kind != Invalid || fault.Accepted != NotAccepted {
				t.Errorf("%s: got %+v, %v, want a fault of %s", tc.name, got, fault, tc.param)
			}
		case fault != nil || got != tc.want:
			t.Errorf("%s: got %+v, %v, want %+v", tc.name, got, fault, tc.want)
		}
	}
}

// TestVideoModelCheck: what of a request a model does not take.
func TestVideoModelCheck(t *testing.T) {
	t.Parallel()
	first, on, off := FirstFrame, true, false
	model := VideoModel{
		Seconds: []string{"5", "10"}, MaxPrompt: 10, NeedsPrompt: true, N: 4, Audio: AudioAlways, Apart: true,
		Inputs: []VideoInput{
			{Role: FirstFrame, MaxBytes: 100},
			{Role: LastFrame, With: &first},
			{Role: Reference, Max: 2, NoLinks: true},
			{Role: SourceVideo, LinksOnly: true},
			{Role: SourceAudio, Types: []string{"audio/mpeg"}},
		},
	}
	png := func(role InputRole) InputShape { return InputShape{Role: role, Type: "image/png", Bytes: 10} }
	for _, tc := range []struct {
		name  string
		shape VideoShape
		param string
	}{
		{"a prompt", VideoShape{Prompt: 3}, ""},
		{"everything", VideoShape{
			Prompt: 3, Seconds: "5.0", N: 4, GenerateAudio: &on,
			Inputs: []InputShape{png(FirstFrame), png(LastFrame), {Role: SourceVideo, Link: true}, {Role: SourceAudio, Type: "audio/mpeg"}},
		}, ""},
		{"no prompt", VideoShape{}, "prompt"},
		{"a long prompt", VideoShape{Prompt: 11}, "prompt"},
		{"seconds", VideoShape{Prompt: 3, Seconds: "6"}, "seconds"},
		{"no sound", VideoShape{Prompt: 3, GenerateAudio: &off}, "generate_audio"},
		{"many", VideoShape{Prompt: 3, N: 5}, "n"},
		{"a frame rate", VideoShape{Prompt: 3, FPS: 24}, "fps"},
		{"a negative prompt", VideoShape{Prompt: 3, Negative: true}, "negative_prompt"},
		{"a seed", VideoShape{Prompt: 3, Seed: true}, "seed"},
		{"a large image", VideoShape{Prompt: 3, Inputs: []InputShape{{Type: "image/png", Bytes: 101}}}, "image"},
		{"a GIF", VideoShape{Prompt: 3, Inputs: []InputShape{{Type: "image/gif"}}}, "image"},
		{"a link to anything", VideoShape{Prompt: 3, Inputs: []InputShape{{Link: true}}}, ""},
		{"a last frame alone", VideoShape{Prompt: 3, Inputs: []InputShape{png(LastFrame)}}, "last_image"},
		{"a reference's link", VideoShape{Prompt: 3, Inputs: []InputShape{{Role: Reference, Link: true}}}, "reference_images"},
		{"three references", VideoShape{Prompt: 3, Inputs: []InputShape{png(Reference), png(Reference), png(Reference)}}, "reference_images"},
		{"references with frames", VideoShape{Prompt: 3, Inputs: []InputShape{png(Reference), png(FirstFrame)}}, "reference_images"},
		{"a video's bytes", VideoShape{Prompt: 3, Inputs: []InputShape{{Role: SourceVideo, Type: "video/mp4"}}}, "video"},
		{"other sound", VideoShape{Prompt: 3, Inputs: []InputShape{{Role: SourceAudio, Type: "audio/wav"}}}, "audio"},
		{"a video to extend", VideoShape{Prompt: 3, Inputs: []InputShape{{Role: ExtendVideo, Link: true}}}, "video"},
	} {
		fault := model.Check(tc.shape)
		if got := fault == nil && tc.param == "" || fault != nil && fault.Param == tc.param && fault.Kind == Invalid; !got {
			t.Errorf("%s: got %v, want a fault of %q", tc.name, fault, tc.param)
		}
	}
	if fault := (VideoModel{NeedsInput: true, Inputs: []VideoInput{{Role: FirstFrame}}}).Check(VideoShape{Prompt: 1}); fault == nil ||
		fault.Param != "image" {
		t.Errorf("an image is needed: got %v", fault)
	}
}

// TestVideoTable: what clients and operators read of a model.
func TestVideoTable(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		model VideoModel
		want  string
	}{
		{"nothing but a prompt", VideoModel{}, `{"seconds":[],"sizes":[],"aspect_ratios":[],"resolutions":[],"inputs":[],"audio":"never","n":1}`},
		{
			"all that comes", AnyVideoModel(VideoInput{}),
			`{"inputs":[{"name":"image","max":1,"types":["image/png","image/jpeg","image/webp"]}],"audio":"optional","n":1}`,
		},
		{"some", VideoModel{
			Seconds: []string{"5", "10"}, Sizes: AnyWord(), AspectRatios: []string{"16:9"}, Audio: AudioAlways, N: AnyNumber,
			Inputs: []VideoInput{
				{Role: LastFrame, NoLinks: true, MaxBytes: 9},
				{Role: Reference, Max: 3, Types: []string{"image/png"}},
				{Role: SourceVideo, LinksOnly: true, MaxBytes: 9},
				{Role: ExtendVideo},
				{Role: SourceAudio},
			},
		}, `{"seconds":["5","10"],"aspect_ratios":["16:9"],"resolutions":[],"inputs":[` +
			`{"name":"last_image","max":1,"types":["image/png","image/jpeg","image/webp"],"max_bytes":9,"from":"upload"},` +
			`{"name":"reference_images","max":3,"types":["image/png"]},{"name":"video","max":1,"from":"link"},` +
			`{"name":"extend","max":1},{"name":"audio","max":1}],"audio":"always"}`},
	} {
		if got, err := json.Marshal(tc.model.Table()); err != nil || string(got) != tc.want {
			t.Errorf("%s: got %s, %v, want %s", tc.name, got, err, tc.want)
		}
	}
}

// TestOneFrameRate: a model's own rate passes although it has no field for one, any other is refused with the one it has.
func TestOneFrameRate(t *testing.T) {
	t.Parallel()
	model := VideoModel{FPS: 24}
	if fault := model.Check(VideoShape{FPS: 24}); fault != nil {
		t.Errorf("its own: %v", fault)
	}
	if fault := model.Check(VideoShape{FPS: 30}); fault == nil || fault.Param != "fps" || !strings.Contains(fault.Message, "takes 24") {
		t.Errorf("another: %v", fault)
	}
	model.FPS = AnyFPS
	if fault := model.Check(VideoShape{FPS: 30}); fault != nil {
		t.Errorf("any: %v", fault)
	}
}

// TestMakes: which videos a model may make, by words and by pixels, and what the vendor's answer lacks.
func TestMakes(t *testing.T) {
	t.Parallel()
	model := VideoModel{Resolutions: []string{"720p", "4k"}, Sizes: []string{"480x854"}, Audio: AudioNever}
	for _, tc := range []struct {
		resolution, audio string
		want              bool
	}{{"720p", "", true}, {"4k", "false", true}, {"480p", "", true}, {"1080p", "", false}, {"", "true", false}, {"", "", true}} {
		if got := model.Makes(tc.resolution, tc.audio); got != tc.want {
			t.Errorf("%q, %q: got %v", tc.resolution, tc.audio, got)
		}
	}
	vendor := Vendor{VideoModels: func(string) (VideoModel, bool) {
		return VideoModel{Resolutions: []string{"720p"}, Audio: AudioAlways}, true
	}}
	if got := vendor.WithFootage("m", VideoStatus{}); got.Resolution != "720p" || got.Audio != "true" {
		t.Errorf("got %+v", got)
	}
	if got := vendor.WithFootage("m", VideoStatus{Resolution: "1080p", Audio: "false"}); got.Resolution != "1080p" || got.Audio != "false" {
		t.Errorf("the vendor's report: got %+v", got)
	}
	for word, want := range map[string]string{"2160P": "4k", " 720P ": "720p", "": "1080p"} {
		if got := ResolutionWord(word, 1080, 1920); got != want {
			t.Errorf("%q: got %s", word, got)
		}
	}
}
