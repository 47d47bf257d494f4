package config_test

import (
	"reflect"
	"testing"

	"modelrelay/providers"
)

// TestFields: what models call a request's fields reaches the router's channel, by the longest beginning of a name.
func TestFields(t *testing.T) {
	t.Parallel()
	cfg, err := parse(hosting + `fields: {
     a/: {image: start_image_url, seconds: {name: duration, as: text}, aspect_ratio: "", resolution: , fps: {as: number}},
     a/b.c: {reference_images: {name: urls}, image: {name: urls, as: list}}}}
`)
	if err != nil {
		t.Fatal(err)
	}
	channel := cfg.Routes()[0]
	first := providers.VideoFields{
		"image": {Name: "start_image_url"}, "seconds": {Name: "duration", As: providers.AsText},
		"aspect_ratio": {Absent: true}, "resolution": {Absent: true}, "fps": {As: providers.AsNumber},
	}
	for model, want := range map[string]providers.VideoFields{
		"a/b": first, "b": nil, "a/b.c/d": {"reference_images": {Name: "urls"}, "image": {Name: "urls", As: providers.AsList}},
	} {
		if got := channel.FieldsOf(model); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", model, got, want)
		}
	}
}
