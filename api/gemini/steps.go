package gemini

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"

	"modelrelay/api/body"
	"modelrelay/providers/rawjson"
)

// steps collects the steps of an interaction from the events of its stream, in the form of the vendor's whole object: the last event omits
// them. The events are StepStart and StepDelta of @google/genai 3.1.0, and the deltas are its StepDeltaData.
type steps struct {
	all     []*step
	byIndex map[int64]*step
}

type step struct {
	members          rawjson.Value // of the start event
	content, summary parts
	arguments        strings.Builder // of a function call: its deltas are parts of a JSON text
	set              []body.Member   // members of which each delta has the whole value
}

type parts []*part

// part is a content. Each delta appends to its text, or to the bytes of its audio.
type part struct {
	members     rawjson.Value
	text        strings.Builder
	annotations [][]byte
	sound       []byte
}

func (s *steps) event(data rawjson.Value) {
	index, _ := data.Get("index").Int()
	switch kind := data.Get("event_type").Text(); {
	case kind.Is("step.start"):
		started := &step{members: bytes.Clone(data.Get("step"))}
		for _, content := range started.members.Get("content").Items() {
			started.content = append(started.content, &part{members: content})
		}
		for _, content := range started.members.Get("summary").Items() {
			started.summary = append(started.summary, &part{members: content})
		}
		if s.byIndex == nil {
			s.byIndex = make(map[int64]*step)
		}
		s.all, s.byIndex[index] = append(s.all, started), started
	case kind.Is("step.delta") && s.byIndex[index] != nil:
		s.byIndex[index].add(bytes.Clone(data.Get("delta")))
	}
}

// add adds a delta. It keeps references to the delta's bytes.
func (s *step) add(delta rawjson.Value) {
	switch kind := delta.Get("type").Text().String(); kind {
	case "text":
		s.content.addText(delta)
	case "text_annotation_delta", "text_annotation":
		text := s.content.last("text")
		for _, annotation := range delta.Get("annotations").Items() {
			text.annotations = append(text.annotations, annotation)
		}
	case "audio":
		s.content.addSound(delta)
	case "image", "video", "document":
		s.content = append(s.content, &part{members: delta})
	case "thought_summary":
		if content := delta.Get("content"); content.Get("type").Text().Is("text") {
			s.summary.addText(content)
		} else if content.IsObject() {
			s.summary = append(s.summary, &part{members: content})
		}
	default: // a signature, or a tool call or its result
		for name, value := range delta.Members() {
			switch {
			case name.Is("type"):
			case name.Is("arguments") && kind == "arguments_delta":
				s.arguments.Write(value.Text().Decoded())
			default:
				s.set = append(s.set, body.Named(name.String(), value))
			}
		}
	}
}

// last returns the last part if it has the type; otherwise it adds one.
func (p *parts) last(kind string) *part {
	if n := len(*p); n > 0 && (*p)[n-1].members.Get("type").Text().Is(kind) {
		return (*p)[n-1]
	}
	*p = append(*p, &part{members: body.WithMembers(nil, body.Named("type", rawjson.Quote(kind)))})
	return (*p)[len(*p)-1]
}

func (p *parts) addText(delta rawjson.Value) {
	p.last("text").text.Write(delta.Get("text").Text().Decoded())
}

func (p *parts) addSound(delta rawjson.Value) {
	sound, err := base64.StdEncoding.AppendDecode(nil, delta.Get("data").Text().Decoded())
	if n := len(*p); err == nil && len(sound) > 0 && n > 0 && (*p)[n-1].sound != nil {
		(*p)[n-1].sound = append((*p)[n-1].sound, sound...)
		return
	}
	if err != nil || len(sound) == 0 {
		sound = nil
	}
	*p = append(*p, &part{members: delta, sound: sound})
}

func (s *steps) list() []byte {
	all := make([][]byte, 0, len(s.all))
	for _, step := range s.all {
		members := slices.Clone(step.set)
		if step.content != nil {
			members = append(members, body.Named("content", step.content.list()))
		}
		if step.summary != nil {
			members = append(members, body.Named("summary", step.summary.list()))
		}
		if arguments := []byte(step.arguments.String()); rawjson.Valid(arguments) {
			members = append(members, body.Named("arguments", arguments))
		} else if len(arguments) > 0 { // an unfinished call
			members = append(members, body.Named("arguments", rawjson.Quote(string(arguments))))
		}
		all = append(all, body.WithMembers(step.members, members...))
	}
	return arrayOf(all)
}

func (p parts) list() []byte {
	all := make([][]byte, 0, len(p))
	for _, part := range p {
		var members []body.Member
		if part.text.Len() > 0 {
			members = append(members, body.Named("text", rawjson.Quote(part.members.Get("text").Text().String()+part.text.String())))
		}
		if len(part.annotations) > 0 {
			members = append(members, body.Named("annotations", arrayOf(part.annotations)))
		}
		if part.sound != nil {
			members = append(members, body.Named("data", rawjson.Quote(base64.StdEncoding.EncodeToString(part.sound))))
		}
		all = append(all, body.WithMembers(part.members, members...))
	}
	return arrayOf(all)
}

func arrayOf(values [][]byte) []byte {
	return slices.Concat([]byte("["), bytes.Join(values, []byte(",")), []byte("]"))
}
