package fakefal

import (
	"encoding/json"
	"slices"
	"strings"

	"modelrelay/dev/upstream/fake"
)

// schema is what of a model's input is checked.
type schema struct {
	// durations are the lengths as JSON, nil for a model that takes none.
	durations []string
	// needs are the members that there must be next to the prompt, images those that may be.
	needs, images []string
}

// schemaOf is that of a model whose name begins and ends so; false for one of which nothing is known.
func schemaOf(model string) (schema, bool) {
	from := func(word string) bool { return strings.Contains(model, "/"+word) }
	switch {
	case strings.HasPrefix(model, "fal-ai/veo3.1"):
		known := schema{durations: []string{`"4s"`, `"6s"`, `"8s"`}}
		switch {
		case from("first-last-frame-to-video"):
			known.needs = []string{"first_frame_url", "last_frame_url"}
		case from("image-to-video"):
			known.needs = []string{"image_url"}
		case from("reference-to-video"):
			known.needs = []string{"image_urls"}
		}
		return known, true
	case strings.HasPrefix(model, "fal-ai/kling-video/v3"):
		known := schema{}
		for _, n := range []string{"3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"} {
			known.durations = append(known.durations, `"`+n+`"`)
		}
		if from("image-to-video") {
			known.needs, known.images = []string{"start_image_url"}, []string{"end_image_url"}
		}
		if from("turbo") {
			known.needs = []string{"image_url"}
		}
		return known, true
	case strings.HasPrefix(model, "alibaba/happy-horse"):
		known := schema{durations: []string{"3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"}}
		if from("image-to-video") {
			known.needs = []string{"image_url"}
		}
		return known, true
	}
	return schema{}, false
}

func wrong(member, kind, message string) *issue {
	return &issue{Place: []string{"body", member}, Message: message, Type: kind}
}

// check is what the model finds wrong with its input, as its schema says; nil for nothing. Members that it does not know it
// ignores.
func check(model string, members map[string]json.RawMessage) *issue {
	known, ok := schemaOf(model)
	if !ok {
		return nil
	}
	var prompt string
	framed := slices.ContainsFunc(known.needs, func(member string) bool { return member == "start_image_url" })
	if json.Unmarshal(members["prompt"], &prompt) != nil || prompt == "" {
		if !framed {
			return wrong("prompt", "missing", "Field required")
		}
	}
	for _, member := range append(slices.Clone(known.needs), known.images...) {
		raw, there := members[member]
		if !there && slices.Contains(known.needs, member) {
			return wrong(member, "missing", "Field required")
		}
		if there && !isMedia(raw) {
			return wrong(member, "image_load_error", "Could not load the image")
		}
	}
	if raw, there := members["duration"]; there && !slices.Contains(known.durations, string(raw)) {
		return wrong("duration", "literal_error", "Input should be "+strings.Join(known.durations, ", "))
	}
	return nil
}

// isMedia reports whether a member is an address or a data URI, or a list of them.
func isMedia(raw json.RawMessage) bool {
	var one string
	var list []string
	if json.Unmarshal(raw, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(raw, &list) != nil {
		return false
	}
	return len(list) > 0 && !slices.ContainsFunc(list, func(text string) bool {
		_, ok := fake.ReadURL(text)
		return !ok
	})
}

// imagesOf are the texts in members whose names speak of an address.
func imagesOf(members map[string]any) []string {
	var found []string
	for member, value := range members {
		if text, ok := value.(string); ok && strings.HasSuffix(member, "_url") {
			found = append(found, text)
		}
	}
	slices.Sort(found)
	return found
}
