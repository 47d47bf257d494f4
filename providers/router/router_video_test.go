package router_test

import (
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/router"
)

// TestVideoModels: a channel whose model does not make what is asked for is passed over; if none does, the first one gives the reason.
func TestVideoModels(t *testing.T) {
	t.Parallel()
	catalog := vendors()
	films := catalog["films"]
	films.VideoModels = func(model string) (providers.VideoModel, bool) {
		lengths := map[string][]string{"short": {"5"}, "long": {"10"}}[model]
		return providers.VideoModel{Seconds: lengths}, lengths != nil
	}
	catalog["films"] = films
	routes := router.New(catalog, []providers.Channel{
		channel("first", "films", func(c *providers.Channel) { c.Priority = 9; c.Models = map[string]string{"m": "short"} }),
		channel("second", "films", func(c *providers.Channel) { c.Models = map[string]string{"m": "long"} }),
		channel("other", "films", func(c *providers.Channel) { c.Models = map[string]string{"n": "unknown"} }),
	}, nil)
	want := func(model, seconds string) router.Request {
		return router.Request{Group: "default", Model: model, Endpoint: video, Video: &providers.VideoShape{Seconds: seconds}}
	}
	for seconds, name := range map[string]string{"5": "first", "10": "second"} {
		channels, err := routes.Candidates(want("m", seconds))
		if err != nil || len(channels) != 1 || channels[0].Name != name {
			t.Errorf("%s s: got %v, %v, want %s", seconds, channels, err, name)
		}
		if fault := routes.Refusal(want("m", seconds)); fault != nil {
			t.Errorf("%s s: refused: %v", seconds, fault)
		}
	}
	_, err := routes.Candidates(want("m", "7"))
	for _, fault := range []*providers.Fault{providers.AsFault(err), routes.Refusal(want("m", "7"))} {
		if fault == nil || fault.Kind != providers.Invalid || fault.Param != "seconds" || fault.Accepted != providers.NotAccepted {
			t.Errorf("7 s: got %v", fault)
		}
	}
	if routes.Serves(want("m", "7")) {
		t.Error("7 s: a channel makes it")
	}
	if !routes.Serves(want("n", "7")) {
		t.Error("a model that is not in the table is refused")
	}
	if fault := routes.Refusal(want("unknown", "7")); fault != nil {
		t.Errorf("a model of no channel: got %v", fault)
	}
	if models := routes.Models("default"); len(models) != 2 || models[0].Video == nil || models[0].Video.Seconds[0] != "5" ||
		models[1].Video != nil {
		t.Errorf("models: got %+v", models)
	}
}

// TestVideoFields: at a vendor that hosts models, a channel's configuration of a model's fields decides what is sent and shown. At
// another vendor it has no effect.
func TestVideoFields(t *testing.T) {
	t.Parallel()
	for hosts, want := range map[bool]string{true: "named", false: ""} {
		catalog := vendors()
		films := catalog["films"]
		films.NamesFields = hosts
		films.VideoModels = func(string) (providers.VideoModel, bool) { return providers.VideoModel{}, true }
		catalog["films"] = films
		routes := router.New(catalog, []providers.Channel{
			channel("plain", "films", func(c *providers.Channel) { c.Priority = 9; c.Models = map[string]string{"m": "up/m"} }),
			channel("named", "films", func(c *providers.Channel) {
				c.Models = map[string]string{"m": "up/m"}
				c.Fields = map[string]providers.VideoFields{"up/": {"last_image": {Name: "end"}}}
			}),
		}, nil)
		shape := &providers.VideoShape{Inputs: []providers.InputShape{{Role: providers.LastFrame, Link: true}}}
		channels, err := routes.Candidates(router.Request{Group: "default", Model: "m", Endpoint: video, Video: shape})
		if want == "" && providers.AsFault(err).Param != "last_image" || want != "" &&
			(err != nil || len(channels) != 1 || channels[0].Name != want) {
			t.Errorf("hosts %t: got %v, %v, want %q", hosts, channels, err, want)
		}
	}
}
