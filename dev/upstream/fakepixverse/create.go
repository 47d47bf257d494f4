package fakepixverse

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"modelrelay/dev/upstream/fake"
)

type reference struct {
	Type string `json:"type"`
	ID   uint64 `json:"img_id"`
	Name string `json:"ref_name"`
}

type create struct {
	Model      string      `json:"model"`
	Prompt     string      `json:"prompt"`
	Duration   int         `json:"duration"`
	Quality    string      `json:"quality"`
	Ratio      string      `json:"aspect_ratio"`
	Seed       *int64      `json:"seed"`
	Image      uint64      `json:"img_id"`
	First      uint64      `json:"first_frame_img"`
	Last       uint64      `json:"last_frame_img"`
	Media      uint64      `json:"video_media_id"`
	Source     uint64      `json:"source_video_id"`
	References []reference `json:"image_references"`
}

// inputs are the ids of uploads that a create names.
func (q *create) inputs() []uint64 {
	ids := []uint64{q.Image, q.First, q.Last, q.Media}
	for _, one := range q.References {
		ids = append(ids, one.ID)
	}
	return slices.DeleteFunc(ids, func(id uint64) bool { return id == 0 })
}

func (s *api) parseCreate(x *fake.Exchange, mode string) *fake.Problem {
	q := new(create)
	if p := x.Decode(q); p != nil {
		return p
	}
	x.Request, x.Model, x.Prompt = q, q.Model, q.Prompt
	if p := q.check(mode); p != nil {
		return p
	}
	for _, id := range q.inputs() {
		if _, ok := s.input(id); !ok {
			return refused(500033, "invalid img_id")
		}
	}
	return nil
}

// named finds the names of references, each with a blank after it.
var named = regexp.MustCompile(`@(\S+)(?: |$)`)

func (q *create) check(mode string) *fake.Problem {
	const largestSeed = 1<<31 - 1
	newest := strings.HasPrefix(q.Model, "v6") || strings.HasPrefix(q.Model, "c1")
	newer := strings.HasPrefix(q.Model, "v5.5") || strings.HasPrefix(q.Model, "v5.6")
	longest := 2048
	if newest && mode != "transition" && mode != "extend" {
		longest = 5000
	}
	ratios := []string{"16:9", "4:3", "1:1", "3:4", "9:16"}
	if newest {
		ratios = append(ratios, "2:3", "3:2", "21:9")
	}
	lengths := q.Duration == 5 || q.Duration == 8 || newer && q.Duration == 10
	if newest {
		lengths = q.Duration >= 1 && q.Duration <= 15
	}
	invalid := func(what string) *fake.Problem { return refused(400017, "invalid param: "+what) }
	switch {
	case q.Model == "" || fake.UnknownModel(q.Model):
		return invalid("model")
	case q.Prompt == "":
		return refused(400013, "prompt is empty")
	case utf8.RuneCountInString(q.Prompt) > longest:
		return refused(400018, "prompt is too long")
	case !lengths, newer && q.Duration == 10 && q.Quality == "1080p":
		return invalid("duration")
	case !slices.Contains([]string{"360p", "540p", "720p", "1080p"}, q.Quality):
		return invalid("quality")
	case (mode == "text" || mode == "fusion") && !slices.Contains(ratios, q.Ratio):
		return invalid("aspect_ratio")
	case q.Seed != nil && (*q.Seed < 0 || *q.Seed > largestSeed):
		return invalid("seed")
	}
	return q.checkMode(mode)
}

// checkMode checks what depends on the path.
func (q *create) checkMode(mode string) *fake.Problem {
	switch {
	case mode == "img" && q.Image == 0:
		return refused(500033, "img_id is required")
	case mode == "transition" && (q.First == 0 || q.Last == 0):
		return refused(500033, "first_frame_img and last_frame_img are required")
	case mode == "extend" && (q.Media == 0) == (q.Source == 0):
		return refused(400017, "one of source_video_id and video_media_id is required")
	case mode != "fusion":
		return nil
	}
	most := 3
	if !strings.HasPrefix(q.Model, "v5") && !strings.HasPrefix(q.Model, "v4") || strings.HasPrefix(q.Model, "v5.") {
		most = 7
	}
	if len(q.References) < 1 || len(q.References) > most {
		return refused(400017, "image_references: count")
	}
	var names []string
	for _, match := range named.FindAllStringSubmatch(q.Prompt, -1) {
		names = append(names, match[1])
	}
	for _, one := range q.References {
		if one.Type != "subject" && one.Type != "background" || one.Name == "" || len(one.Name) > 30 || !slices.Contains(names, one.Name) {
			return refused(400017, "image_references: "+one.Name)
		}
	}
	return nil
}
