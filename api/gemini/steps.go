package gemini

import (
	"encoding/base64"
	"encoding/json"

	apitasks "modelrelay/api/tasks"
)

// steps collects the steps of an interaction from the events of its stream, in the form of the vendor's whole object: the last event omits
// them. The events are StepStart and StepDelta of @google/genai 3.1.0, and the deltas are its StepDeltaData.
type steps struct {
	all     []apitasks.Collected
	byIndex map[int]apitasks.Collected
}

type stepEvent struct {
	Type        string `json:"event_type"`
	Index       int
	Step, Delta apitasks.Collected
}

func (s *steps) event(data []byte) {
	var event stepEvent
	if !apitasks.ReadEvent(data, &event) {
		return
	}
	switch step := s.byIndex[event.Index]; {
	case event.Type == "step.start" && event.Step != nil:
		if s.byIndex == nil {
			s.byIndex = make(map[int]apitasks.Collected)
		}
		s.all, s.byIndex[event.Index] = append(s.all, event.Step), event.Step
	case event.Type == "step.delta" && step != nil:
		addDelta(step, event.Delta)
	}
}

func addDelta(step, delta apitasks.Collected) {
	text, _ := delta["text"].(string)
	switch delta["type"] {
	case "text":
		apitasks.Grow(textOf(step, "content"), "text", text)
	case "text_annotation_delta", "text_annotation":
		annotations, _ := delta["annotations"].([]any)
		apitasks.AppendTo(textOf(step, "content"), "annotations", annotations...)
	case "audio":
		addSound(step, delta)
	case "image", "video", "document":
		apitasks.AppendTo(step, "content", delta)
	case "thought_summary":
		if content, _ := delta["content"].(apitasks.Collected); content["type"] == "text" {
			text, _ := content["text"].(string)
			apitasks.Grow(textOf(step, "summary"), "text", text)
		} else if content != nil {
			apitasks.AppendTo(step, "summary", content)
		}
	case "arguments_delta": // parts of a JSON text
		arguments, _ := delta["arguments"].(string)
		apitasks.Grow(step, "arguments", arguments)
	default: // a signature, or a tool call or its result: the delta has whole members
		for name, value := range delta {
			if name != "type" {
				step[name] = value
			}
		}
	}
}

// lastOf returns the last object in a list of a step, nil for none.
func lastOf(step apitasks.Collected, list string) apitasks.Collected {
	parts, _ := step[list].([]any)
	if len(parts) == 0 {
		return nil
	}
	last, _ := parts[len(parts)-1].(apitasks.Collected)
	return last
}

// textOf returns the last part in a list of a step if it is a text; otherwise it adds one.
func textOf(step apitasks.Collected, list string) apitasks.Collected {
	part := lastOf(step, list)
	if part["type"] != "text" {
		part = apitasks.Collected{"type": "text"}
		apitasks.AppendTo(step, list, part)
	}
	return part
}

// addSound adds the bytes of a delta to the sound before it, or as a new part.
func addSound(step, delta apitasks.Collected) {
	encoded, _ := delta["data"].(string)
	if sound, err := base64.StdEncoding.DecodeString(encoded); err == nil && len(sound) > 0 {
		part := lastOf(step, "content")
		if before, ok := part["data"].([]byte); ok {
			part["data"] = append(before, sound...)
			return
		}
		delta["data"] = sound // it is marshalled as Base64
	}
	apitasks.AppendTo(step, "content", delta)
}

func (s *steps) list() ([]byte, error) {
	for _, step := range s.all {
		if arguments := apitasks.Grown(step, "arguments"); json.Valid(arguments) { // otherwise the call is unfinished
			step["arguments"] = json.RawMessage(arguments)
		}
	}
	return json.Marshal(append([]apitasks.Collected{}, s.all...))
}
