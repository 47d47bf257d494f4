package fakevidu

import (
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"modelrelay/dev/upstream/fake"
)

type create struct {
	Model      string   `json:"model"`
	Prompt     string   `json:"prompt"`
	Images     []string `json:"images"`
	VideoURL   string   `json:"video_url"`
	Duration   *int     `json:"duration"`
	Resolution string   `json:"resolution"`
	Ratio      *string  `json:"aspect_ratio"`
	Audio      *bool    `json:"audio"`
	Payload    string   `json:"payload"`
	Callback   string   `json:"callback_url"`
}

func refused(reason, message string) *fake.Problem {
	return &fake.Problem{Status: http.StatusBadRequest, Kind: fake.Invalid, Code: reason, Message: message}
}

// invalid names a member whose value the vendor does not take.
func invalid(member string) *fake.Problem { return refused("FieldInvalid", "invalid field: "+member) }

// limits are what a family of models makes in a mode.
type limits struct {
	shortest, longest int
	resolutions       []string
}

// limitsOf are those of the models whose names begin so; false for one that the mode does not have.
func limitsOf(model, mode string) (limits, bool) {
	all, high := []string{"540p", "720p", "1080p"}, []string{"1080p"}
	is := func(prefix string) bool { return strings.HasPrefix(model, prefix) }
	switch {
	case is("viduq3-pro-fast"), is("viduq3-mix"):
		return limits{1, 16, all[1:]}, true
	case is("viduq3") && mode == "reference2video":
		return limits{3, 16, all}, true
	case is("viduq3"):
		return limits{1, 16, all}, mode != "extend"
	case is("viduq2") && mode == "extend":
		return limits{1, 7, all}, true
	case is("viduq2") && mode == "start-end2video":
		return limits{1, 8, all}, true
	case is("viduq2"):
		return limits{1, 10, all}, true
	case is("viduq1"):
		return limits{5, 5, high}, mode != "extend"
	case is("vidu2.0"):
		return limits{4, 8, []string{"360p", "720p", "1080p"}}, mode != "text2video" && mode != "extend"
	}
	return limits{}, false
}

func parseCreate(x *fake.Exchange, mode string) *fake.Problem {
	q := new(create)
	if p := x.Decode(q); p != nil {
		return p
	}
	x.Request, x.Model, x.Prompt = q, q.Model, q.Prompt
	known, ok := limitsOf(q.Model, mode)
	const largestBody = 20 << 20
	switch {
	case len(x.Body) > largestBody:
		return refused("BadRequest", "request body too large")
	case !ok:
		return refused("ModelUnavailable", "the model is not available")
	}
	if p := q.checkMode(mode); p != nil {
		return p
	}
	const longestPrompt = 5000
	switch {
	case utf8.RuneCountInString(q.Prompt) > longestPrompt:
		return invalid("prompt")
	case q.Duration != nil && (*q.Duration < known.shortest || *q.Duration > known.longest):
		return invalid("duration")
	case q.Resolution != "" && !slices.Contains(known.resolutions, q.Resolution):
		return invalid("resolution")
	case q.Audio != nil && !strings.HasPrefix(q.Model, "viduq3"):
		return refused("FieldUnwanted", "unwanted field: audio")
	}
	return nil
}

// checkMode checks what depends on the path.
func (q *create) checkMode(mode string) *fake.Problem {
	counts := map[string][2]int{
		"text2video": {0, 0}, "img2video": {1, 1}, "start-end2video": {2, 2}, "reference2video": {1, 7},
		"extend": {0, 1},
	}
	least, most := counts[mode][0], counts[mode][1]
	wide := mode == "text2video" || mode == "reference2video"
	switch {
	case len(q.Images) < least || len(q.Images) > most:
		return refused("FieldItemCountOutOfRange", "images: count out of range")
	case !wide && q.Ratio != nil:
		return refused("FieldUnwanted", "unwanted field: aspect_ratio")
	case wide && q.Prompt == "":
		return refused("FieldLacking", "lacking field: prompt")
	case wide && q.Ratio != nil && !slices.Contains([]string{"16:9", "9:16", "3:4", "4:3", "1:1"}, *q.Ratio):
		return invalid("aspect_ratio")
	case mode == "extend" && q.VideoURL == "":
		return refused("FieldLacking", "lacking field: video_url")
	case mode != "extend" && q.VideoURL != "":
		return refused("FieldUnwanted", "unwanted field: video_url")
	}
	for _, image := range q.Images {
		// Bytes without the type of a data URI are refused.
		if m, ok := fake.ReadURL(image); !ok || m.URL == "" && !slices.Contains([]string{"image/png", "image/jpeg", "image/webp"}, m.Type) {
			return refused("ImageFormatInvalid", "image format invalid")
		}
	}
	return nil
}
