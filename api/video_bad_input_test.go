package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/providers/vendors"
)

// videoLimits are one model of a vendor and what it does not make; an empty word and a zero number leave a case out.
type videoLimits struct {
	vendor, model string
	// good is a length that it makes.
	good, seconds, size, ratio string
	// references is how many are too many: 1 of a model that takes none.
	references int
	// apart: it takes references, but not together with frames. bytes: it takes inputs as bytes only.
	apart, bytes bool
	// largest is more than an image may have, in bytes. framed: it makes nothing without a first frame.
	largest int
	framed  bool
	// ends: it makes a video that ends with a frame as well.
	ends bool
}

func vendorLimits() []videoLimits {
	return []videoLimits{
		{
			vendor: "ark", model: "doubao-seedance-2-0-260128", good: "5", seconds: "99", size: "100x100", ratio: "5:4", references: 31,
			apart: true,
		},
		{vendor: "fal", model: "fal-ai/veo3.1", good: "8", seconds: "5", size: "640x480", ratio: "1:1", references: 1},
		{
			vendor: "fal", model: "fal-ai/kling-video/v3/pro/image-to-video", good: "5", seconds: "2", size: "1280x720", ratio: "16:9",
			references: 1, framed: true,
		},
		{vendor: "hailuo", model: "MiniMax-H3", good: "5", seconds: "3", size: "640x480", ratio: "5:4", references: 10, apart: true},
		{vendor: "hailuo", model: "MiniMax-Hailuo-02", good: "6", seconds: "5", size: "640x480", ratio: "16:9", references: 1},
		{vendor: "kling", model: "kling-3.0", good: "5", seconds: "2", size: "640x480", ratio: "5:4", references: 1},
		{vendor: "luma", model: "ray-3.2", good: "5", seconds: "7", size: "100x100", ratio: "5:4", references: 1, ends: true},
		{
			vendor: "omni", model: "gemini-omni-1.2-flash", good: "5", seconds: "2", size: "100x100", ratio: "1:1", references: 11, apart: true,
			bytes: true,
		},
		{vendor: "pixverse", model: "v6", good: "5", seconds: "16", size: "640x480", ratio: "5:4", references: 8, apart: true},
		{vendor: "replicate", model: "google/veo-3.1", good: "8", seconds: "5", size: "640x480", ratio: "1:1", references: 4, apart: true},
		{vendor: "runway", model: "gen4.5", good: "5", seconds: "11", size: "640x480", ratio: "2:3", references: 1},
		{
			vendor: "veo", model: "veo-3.1-generate-001", good: "8", seconds: "5", size: "640x480", ratio: "1:1", references: 4, apart: true,
			bytes: true,
		},
		{vendor: "vidu", model: "viduq3-turbo", good: "5", seconds: "17", size: "640x480", ratio: "5:4", references: 8},
		{vendor: "wan", model: "wan3.0-video", good: "5", seconds: "31", size: "100x100", ratio: "5:4", references: 11, apart: true},
		{vendor: "xai", model: "grok-imagine-video", good: "6", seconds: "16", size: "100x100", ratio: "5:4", references: 8, apart: true},
		{vendor: "zhipu", model: "cogvideox-3", good: "5", seconds: "7", size: "640x480", ratio: "5:4", references: 1, largest: 5<<20 + 1},
	}
}

// asked is a video that is asked for, before a format words it. An image is an address, or bytes in Base64.
type asked struct {
	prompt, seconds, size, ratio, resolution string
	first, last                              string
	references                               []string
}

const addressOfImage = "https://h.example/a.png"

// shownFormats word what is asked for; "" where a format cannot.
func shownFormats() map[string]func(model string, a asked) (path, body string) {
	write := func(members map[string]any) string {
		maps.DeleteFunc(members, func(_ string, value any) bool { return value == "" || value == nil })
		doc, err := json.Marshal(members)
		if err != nil {
			panic(err) // of texts and lists of texts
		}
		return string(doc)
	}
	list := func(images []string) any {
		if images == nil {
			return nil
		}
		return images
	}
	return map[string]func(string, asked) (string, string){
		"sora": func(model string, a asked) (string, string) {
			return "/v1/videos", write(map[string]any{
				"model": model, "prompt": a.prompt, "seconds": a.seconds, "size": a.size, "aspect_ratio": a.ratio, "resolution": a.resolution,
				"image":      a.first,
				"last_image": a.last, "reference_images": list(a.references),
			})
		},
		"generic": func(model string, a asked) (string, string) {
			members := map[string]any{
				"model": model, "prompt": a.prompt, "aspect_ratio": a.ratio, "resolution": a.resolution, "image": a.first, "last_image": a.last,
				"reference_images": list(a.references),
			}
			if seconds, err := strconv.Atoi(a.seconds); err == nil {
				members["duration"] = seconds
			}
			if width, height, ok := strings.Cut(a.size, "x"); ok {
				members["width"], _ = strconv.Atoi(width)
				members["height"], _ = strconv.Atoi(height)
			}
			return generations, write(members)
		},
		"vendor C": func(model string, a asked) (string, string) {
			if a.last != "" || a.references != nil || a.size != "" || a.resolution != "" {
				return "", "" // it has no such words
			}
			members := map[string]any{"model": model, "prompt": a.prompt, "aspect_ratio": a.ratio}
			if seconds, err := strconv.Atoi(a.seconds); err == nil {
				members["frames"] = 24*seconds + 1
			}
			if strings.HasPrefix(a.first, "https://") {
				members["image_urls"] = []string{a.first}
			} else if a.first != "" {
				members["binary_data_base64"] = []string{a.first}
			}
			return submitPath, write(members)
		},
		"format B": func(model string, a asked) (string, string) {
			if a.size != "" || strings.Contains(model, "/") {
				return "", "" // it has no such words
			}
			image := func(text string) any {
				switch {
				case text == "":
					return nil
				case strings.HasPrefix(text, "https://"):
					return map[string]string{"uri": text}
				}
				return map[string]string{"bytesBase64Encoded": text, "mimeType": "image/png"}
			}
			var references []any
			for _, text := range a.references {
				references = append(references, map[string]any{"image": image(text), "referenceType": "asset"})
			}
			instance := map[string]any{"prompt": a.prompt, "image": image(a.first), "lastFrame": image(a.last)}
			if references != nil {
				instance["referenceImages"] = references
			}
			maps.DeleteFunc(instance, func(_ string, value any) bool { return value == "" || value == nil })
			parameters := map[string]any{"aspectRatio": a.ratio, "resolution": a.resolution}
			if seconds, err := strconv.Atoi(a.seconds); err == nil {
				parameters["durationSeconds"] = seconds
			}
			maps.DeleteFunc(parameters, func(_ string, value any) bool { return value == "" })
			return "/v1beta/models/" + model + ":predictLongRunning", write(map[string]any{"instances": []any{instance}, "parameters": parameters})
		},
	}
}

// bad are what the model does not make, by what is wrong.
func (l videoLimits) bad() map[string]asked {
	image := addressOfImage
	if l.bytes {
		image = base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n image"))
	}
	good := l.usual()
	with := func(change func(*asked)) asked {
		changed := good
		change(&changed)
		return changed
	}
	cases := map[string]asked{
		"a length":                     with(func(a *asked) { a.seconds = l.seconds }),
		"a size":                       with(func(a *asked) { a.size = l.size }),
		"a ratio":                      with(func(a *asked) { a.ratio = l.ratio }),
		"a last frame without a first": with(func(a *asked) { a.first, a.last = "", image }),
		"too many references":          with(func(a *asked) { a.references = slices.Repeat([]string{image}, l.references) }),
		"no prompt":                    with(func(a *asked) { a.prompt, a.first = "", "" }),
	}
	if l.ends {
		delete(cases, "a last frame without a first")
	}
	if l.apart {
		cases["references with a frame"] = with(func(a *asked) { a.first, a.references = image, []string{image} })
	}
	if l.bytes {
		cases["an address"] = with(func(a *asked) { a.first = addressOfImage })
	}
	if l.largest > 0 {
		data := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, l.largest-8)...)
		cases["a large image"] = with(func(a *asked) { a.first = base64.StdEncoding.EncodeToString(data) })
	}
	return cases
}

// usual is what the model makes.
func (l videoLimits) usual() asked {
	a := asked{prompt: "a cat", seconds: l.good}
	if l.framed {
		a.first = addressOfImage
	}
	return a
}

// TestVideoBadInput: what a vendor does not make is refused at the create, in each format, before a task is made or anything sent.
func TestVideoBadInput(t *testing.T) {
	t.Parallel()
	vendors := vendors.New(http.DefaultClient)
	for _, l := range vendorLimits() {
		t.Run(l.vendor+" "+l.model, func(t *testing.T) {
			t.Parallel()
			g := newVideoGateway(t, vendors, l.vendor, l.model)
			for format, show := range shownFormats() {
				for name, a := range l.bad() {
					path, body := show(l.model, a)
					if path == "" {
						continue
					}
					rec := g.do(t, request("POST", path, body))
					said := strings.ToLower(rec.Body.String())
					named := slices.ContainsFunc(wordsFor(name), func(word string) bool { return strings.Contains(said, "'"+word) })
					if rec.Code != http.StatusBadRequest || !named || len(g.tasks.creates) > 0 {
						t.Errorf("%s in %s: got %d %s", name, format, rec.Code, shortly(rec.Body.String()))
						g.tasks.creates = nil
					}
				}
				if path, body := show(l.model, l.usual()); path != "" {
					if rec := g.do(t, request("POST", path, body)); rec.Code != http.StatusOK {
						t.Errorf("what it makes in %s: got %d %s", format, rec.Code, rec.Body)
					}
					g.tasks.creates = nil
				}
			}
		})
	}
}

// newVideoGateway is a gateway with one model of a vendor.
func newVideoGateway(t *testing.T, vendors providers.Catalog, vendor, model string) *gateway {
	t.Helper()
	return newGateway(t, nil, func(_ *gateway, o *api.Options) {
		o.Router = router.New(vendors, []providers.Channel{{
			Name: "main", Vendor: vendor, BaseURL: "http://upstream.invalid", Keys: []providers.Secret{"k"}, Models: map[string]string{model: ""},
			Groups: []string{"default"},
		}}, nil)
	})
}

// TestVideoBadTogether: what a model takes, but not together, is refused at the create as well, in each format.
func TestVideoBadTogether(t *testing.T) {
	t.Parallel()
	vendors := vendors.New(http.DefaultClient)
	image, picture := addressOfImage, base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n image"))
	for _, tc := range []struct {
		vendor, model, like string
		asked, taken        asked
	}{
		{"ark", "doubao-seedance-2-5-260628", "a ratio", asked{ratio: "16:9", first: image}, asked{ratio: "16:9"}},
		{"hailuo", "MiniMax-Hailuo-02", "a length", asked{seconds: "10", resolution: "1080p"}, asked{seconds: "6", resolution: "1080p"}},
		{"hailuo", "MiniMax-Hailuo-02", "a resolution", asked{resolution: "512p"}, asked{resolution: "512p", first: image}},
		{"hailuo", "MiniMax-H3", "a ratio", asked{ratio: "16:9", first: image}, asked{ratio: "16:9"}},
		{"kling", "kling-3.0", "a ratio", asked{ratio: "16:9", first: image}, asked{ratio: "16:9"}},
		{"kling", "kling-2.6", "a resolution", asked{first: image, last: image}, asked{first: image, last: image, resolution: "1080p"}},
		{"kling", "kling-o1", "a length", asked{seconds: "7"}, asked{seconds: "10"}},
		{"luma", "ray-3.2", "a length", asked{seconds: "10", first: image}, asked{seconds: "10"}},
		{"pixverse", "v5.6", "a length", asked{seconds: "10", resolution: "1080p"}, asked{seconds: "10", resolution: "720p"}},
		{"pixverse", "v6", "a ratio", asked{ratio: "16:9", first: image}, asked{ratio: "16:9"}},
		{"runway", "gen4.5", "a size", asked{size: "1104x832"}, asked{size: "1104x832", first: image}},
		{
			"veo", "veo-3.1-generate-001", "a length",
			asked{seconds: "4", references: []string{picture}},
			asked{seconds: "8", references: []string{picture}},
		},
		{"veo", "veo-3.1-generate-preview", "a length", asked{seconds: "4", resolution: "1080p"}, asked{seconds: "8", resolution: "1080p"}},
		{"vidu", "viduq3-turbo", "a ratio", asked{ratio: "16:9", first: image}, asked{ratio: "16:9"}},
		{
			"wan", "wan2.7-r2v", "a ratio",
			asked{ratio: "16:9", first: image, references: []string{image}},
			asked{ratio: "16:9", references: []string{image}},
		},
		{"xai", "grok-imagine-video", "a length", asked{seconds: "15", references: []string{image}}, asked{seconds: "15"}},
		{"zhipu", "viduq1-start-end", "a last frame without a first", asked{first: image}, asked{first: image, last: image}},
	} {
		t.Run(tc.vendor+" "+tc.model+" "+tc.like, func(t *testing.T) {
			t.Parallel()
			g := newVideoGateway(t, vendors, tc.vendor, tc.model)
			tc.asked.prompt, tc.taken.prompt = "a cat", "a cat"
			shown := 0
			for format, show := range shownFormats() {
				if path, body := show(tc.model, tc.asked); path != "" {
					shown++
					rec := g.do(t, request("POST", path, body))
					said := strings.ToLower(rec.Body.String())
					named := slices.ContainsFunc(wordsFor(tc.like), func(word string) bool { return strings.Contains(said, "'"+word) })
					if rec.Code != http.StatusBadRequest || !named || len(g.tasks.creates) > 0 {
						t.Errorf("%s: got %d %s", format, rec.Code, shortly(rec.Body.String()))
					}
					g.tasks.creates = nil
				}
				if path, body := show(tc.model, tc.taken); path != "" {
					if rec := g.do(t, request("POST", path, body)); rec.Code != http.StatusOK {
						t.Errorf("what it makes in %s: got %d %s", format, rec.Code, shortly(rec.Body.String()))
					}
					g.tasks.creates = nil
				}
			}
			if shown == 0 {
				t.Error("no format can ask for it")
			}
		})
	}
}

// wordsFor are the beginnings of the fields that a refusal may name.
func wordsFor(name string) []string {
	switch name {
	case "a length":
		return []string{"seconds", "duration", "frames"}
	case "a size":
		return []string{"size", "width"}
	case "a ratio":
		return []string{"aspect"}
	case "a resolution":
		return []string{"resolution"}
	case "a last frame without a first":
		return []string{"last"}
	case "too many references", "references with a frame":
		return []string{"reference"}
	case "no prompt":
		return []string{"prompt", "image"}
	default:
		return []string{"image", "input_reference", "binary_data_base64"}
	}
}

func shortly(text string) string { return fmt.Sprintf("%.300s", text) }
