package providers

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// VideoField is a hosted model's name for a field of a request, and the form of its value.
type VideoField struct {
	// Name is the model's name of the field; "" for the usual one.
	Name string `yaml:"name"`
	// As is the form of the value; "" for the usual one.
	As FieldForm `yaml:"as"`
	// Absent: the model does not have the field. A request that sets it is refused.
	Absent bool
}

// FieldForm is a form in which a value is written.
type FieldForm string

// The forms of values.
const (
	AsNumber FieldForm = "number" // 8, of seconds, fps and seed
	AsText   FieldForm = "text"   // "8", of seconds, fps and seed
	AsUnit   FieldForm = "unit"   // "8s", of seconds
	AsUpper  FieldForm = "upper"  // "720P", of resolution
	AsStar   FieldForm = "star"   // "1280*720", of size
	AsList   FieldForm = "list"   // a list of inputs, which several fields may share
	AsOne    FieldForm = "one"    // one input outside of a list
)

// VideoFields are a hosted model's names of the fields of a request, by VideoFieldNames. A missing field has its usual name.
type VideoFields map[string]VideoField

// videoFieldForms lists the fields that may have another name, with the forms of their values.
func videoFieldForms() map[string][]FieldForm {
	inputs, numbers := []FieldForm{AsOne, AsList}, []FieldForm{AsNumber, AsText}
	return map[string][]FieldForm{
		"prompt": nil, "negative_prompt": nil, "image": inputs, "last_image": inputs, "reference_images": inputs, "video": inputs,
		"extend": inputs, "audio": inputs, "seconds": {AsNumber, AsText, AsUnit}, "size": {AsStar}, "aspect_ratio": nil,
		"resolution": {AsUpper}, "fps": numbers, "seed": numbers, "generate_audio": nil,
	}
}

// VideoFieldNames lists the fields that may have another name at a model, by the generic format. extend is a video to continue.
func VideoFieldNames() []string { return slices.Sorted(maps.Keys(videoFieldForms())) }

// roleField returns the field for the inputs of a role, which distinguishes a video to continue.
func roleField(role InputRole) string {
	if role == ExtendVideo {
		return string(ExtendVideo)
	}
	return InputField(role)
}

// Of returns the model's field for the inputs of a role.
func (f VideoFields) Of(role InputRole) VideoField { return f[roleField(role)] }

// Check returns the error of the field of that name, nil for none.
func (f VideoFields) Check(name string) error {
	forms, known := videoFieldForms()[name]
	field := f[name]
	switch {
	case !known:
		return fmt.Errorf("is not a field; the fields are %s", strings.Join(VideoFieldNames(), ", "))
	case field.Absent && name == "prompt":
		return errors.New("requires a name: each model has a prompt")
	case field.As != "" && len(forms) == 0:
		return errors.New("has only one form: omit \"as\"")
	case field.As != "" && !slices.Contains(forms, field.As):
		return fmt.Errorf("%q is not a form of this field; the forms are %q", field.As, forms)
	}
	for _, other := range slices.Sorted(maps.Keys(f)) {
		if field.Name != "" && other < name && f[other].Name == field.Name && (!f.listed(name) || !f.listed(other)) {
			return fmt.Errorf("has the name of %s; only inputs that are all written as a list may share one", other)
		}
	}
	return nil
}

func (f VideoFields) listed(name string) bool {
	return f[name].As == AsList || name == "reference_images" && f[name].As == ""
}

// maxNamedReferences bounds the references of a model whose field for them comes from the operator.
const maxNamedReferences = 9

// Open returns what a model with these fields accepts: those that are named, and none that is absent. Unlisted fields accept every value.
func (f VideoFields) Open(m VideoModel) VideoModel {
	if len(f) == 0 {
		return m
	}
	for name, list := range map[string]*[]string{
		"seconds": &m.Seconds, "size": &m.Sizes, "aspect_ratio": &m.AspectRatios, "resolution": &m.Resolutions,
	} {
		switch field, named := f[name]; {
		case field.Absent:
			*list = nil
		case named && *list == nil:
			*list = AnyWord()
		}
	}
	for name, takes := range map[string]*bool{"negative_prompt": &m.Negative, "seed": &m.Seed} {
		if field, named := f[name]; named {
			*takes = !field.Absent
		}
	}
	if field, named := f["fps"]; named {
		m.FPS = AnyFPS
		if field.Absent {
			m.FPS = 0
		}
	}
	if field, named := f["generate_audio"]; named {
		m.Audio = AudioOption
		if field.Absent {
			m.Audio = AudioNever
		}
	}
	m.Inputs = f.inputs(m.Inputs)
	return m
}

// inputs returns a model's inputs, with the named ones and without the absent ones.
func (f VideoFields) inputs(known []VideoInput) []VideoInput {
	inputs := slices.Clone(known)
	for _, role := range [...]InputRole{FirstFrame, LastFrame, Reference, SourceVideo, ExtendVideo, SourceAudio} {
		field, named := f[roleField(role)]
		at := slices.IndexFunc(inputs, func(input VideoInput) bool { return input.Role == role })
		switch {
		case !named:
			continue
		case field.Absent:
			inputs = slices.DeleteFunc(inputs, func(input VideoInput) bool { return input.Role == role })
			continue
		case at < 0:
			at = len(inputs)
			inputs = append(inputs, VideoInput{Role: role})
			if role == Reference {
				inputs[at].Max = maxNamedReferences
			}
		}
		if field.As == AsOne {
			inputs[at].Max = 1
		}
	}
	return inputs
}
