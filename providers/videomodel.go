package providers

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// VideoModel is what one model of a vendor accepts, by the vendor's documentation. A nil list is a field that the model does not
// have: a request that sets it is refused. AnyWord is a list that accepts everything.
type VideoModel struct {
	// Seconds are the lengths that it makes, Sizes its sizes in pixels ("1280x720"), AspectRatios and Resolutions its words for
	// them, in lower case. If the model has only words, a request's pixels are mapped to words, and the other way around.
	Seconds, Sizes, AspectRatios, Resolutions []string
	// UsualSeconds and UsualResolution are what it makes of a request that leaves them open; "" for those of the vendor. A model of
	// any size and without Resolutions always makes UsualResolution.
	UsualSeconds, UsualResolution string
	// FPS is its only frame rate, AnyFPS if it accepts several, 0 if it has no such field.
	FPS int
	// Inputs are the inputs that it accepts in addition to the prompt.
	Inputs []VideoInput
	// Apart: references cannot be combined with first and last frames.
	Apart bool
	// Audio is whether the videos have sound.
	Audio VideoAudio
	// N is the most videos of one job; 0 means one, AnyNumber any number.
	N int
	// MaxPrompt bounds the prompt in characters, 0 if unknown. UTF16: the vendor counts UTF-16 code units. NeedsPrompt: a prompt is
	// required with any inputs. Negative: a negative prompt is accepted.
	MaxPrompt                    int
	UTF16, NeedsPrompt, Negative bool
	// Seed: a seed is accepted.
	Seed bool
	// NeedsInput: one of the Inputs is required.
	NeedsInput bool
}

// AnyFPS and AnyNumber accept every number.
const (
	AnyFPS    = -1
	AnyNumber = -1
)

// AnyWord returns a list of a VideoModel that accepts everything.
func AnyWord() []string { return []string{"*"} }

// Describes reports whether the table contains anything about the model. It does not for a model that accepts every word, such as
// AnyVideoModel, which may not make videos at all.
func (m VideoModel) Describes() bool {
	return !slices.Equal(m.Seconds, AnyWord()) || !slices.Equal(m.Sizes, AnyWord()) || !slices.Equal(m.Resolutions, AnyWord())
}

// AnyVideoModel returns a model of a vendor without a table, such as a compatible server: it accepts every word, one video, and the inputs.
func AnyVideoModel(inputs ...VideoInput) VideoModel {
	return VideoModel{
		Seconds: AnyWord(), Sizes: AnyWord(), AspectRatios: AnyWord(), Resolutions: AnyWord(), FPS: AnyFPS, Audio: AudioOption,
		Negative: true, Seed: true, Inputs: inputs,
	}
}

// Open returns what an unknown model of a vendor may accept: every value of the fields in the vendor's table.
func (m VideoModel) Open() VideoModel {
	for _, list := range [...]*[]string{&m.Seconds, &m.Sizes, &m.AspectRatios, &m.Resolutions} {
		if *list != nil {
			*list = AnyWord()
		}
	}
	m.MaxPrompt, m.UsualSeconds, m.UsualResolution = 0, "", ""
	return m
}

// Takes reports whether the model accepts inputs of a role.
func (m VideoModel) Takes(role InputRole) bool {
	return slices.ContainsFunc(m.Inputs, func(input VideoInput) bool { return input.Role == role })
}

// VideoAudio is whether a model's videos have sound.
type VideoAudio string

// The values of VideoAudio. The zero value is a model without sound.
const (
	AudioNever  VideoAudio = ""
	AudioOption VideoAudio = "optional" // as the request sets it
	AudioAlways VideoAudio = "always"
)

// VideoInput is one role of inputs that a model accepts.
type VideoInput struct {
	Role InputRole
	// Max is how many; 0 means one.
	Max int
	// Types are the accepted media types; nil means PNG, JPEG and WebP for images, and any for other inputs.
	Types []string
	// MaxBytes bounds an upload, 0 if unknown.
	MaxBytes int64
	// NoLinks: only uploads are accepted. LinksOnly: only links are accepted.
	NoLinks, LinksOnly bool
	// Needed: one is required.
	Needed bool
	// With is a role that is required as well, FirstFrame for a LastFrame; nil for none.
	With *InputRole
}

// Frames returns a first and a last frame with the same limits. A last frame requires a first frame.
func Frames(like VideoInput) []VideoInput {
	last, first := like, FirstFrame
	last.Role, last.With = LastFrame, &first
	return []VideoInput{like, last}
}

// VideoShape is the part of a request that a VideoModel checks. It is stored in workflow histories.
type VideoShape struct {
	Seconds       string `json:"seconds,omitempty"`
	Size          string `json:"size,omitempty"`
	Width         int    `json:"width,omitempty"`
	Height        int    `json:"height,omitempty"`
	AspectRatio   string `json:"aspect_ratio,omitempty"`
	Resolution    string `json:"resolution,omitempty"`
	FPS           int    `json:"fps,omitempty"`
	N             int    `json:"n,omitempty"`
	GenerateAudio *bool  `json:"generate_audio,omitempty"`
	Negative      bool   `json:"negative,omitempty"`
	Seed          bool   `json:"seed,omitempty"`
	Prompt        int    `json:"prompt,omitempty"` // in characters
	// PromptUTF16 is how many UTF-16 code units the prompt has beyond its characters.
	PromptUTF16 int          `json:"prompt_utf16,omitempty"`
	Inputs      []InputShape `json:"inputs,omitempty"`
}

// InputShape is the part of an input that a VideoModel checks.
type InputShape struct {
	Role InputRole `json:"role,omitempty"`
	// Type and Bytes are those of an upload; unknown for a link.
	Type  string `json:"type,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
	Link  bool   `json:"link,omitempty"`
}

// Shape returns the part of the request that a VideoModel checks.
func (r VideoRequest) Shape() VideoShape {
	shape := VideoShape{
		Seconds: r.Seconds, Size: r.Size, Width: r.Width, Height: r.Height, AspectRatio: r.AspectRatio, Resolution: r.Resolution,
		FPS: r.FPS, N: r.N, GenerateAudio: r.GenerateAudio, Negative: r.NegativePrompt != "", Seed: r.Seed != nil,
		Prompt: utf8.RuneCountInString(r.Prompt),
	}
	for _, c := range r.Prompt {
		shape.PromptUTF16 += utf16.RuneLen(c) - 1
	}
	for _, input := range r.Inputs {
		shape.Inputs = append(shape.Inputs, InputShape{Role: input.Role, Type: input.ContentType, Bytes: input.Size, Link: input.URL != ""})
	}
	return shape
}

// Count returns the number of inputs of a role.
func (s VideoShape) Count(role InputRole) int {
	n := 0
	for _, input := range s.Inputs {
		if input.Role == role {
			n++
		}
	}
	return n
}

// Has reports whether there are inputs of a role.
func (s VideoShape) Has(role InputRole) bool { return s.Count(role) > 0 }

// RatioField returns the field with which the request sets a ratio: as a word or in pixels.
func (s VideoShape) RatioField() string {
	switch {
	case s.AspectRatio != "":
		return "aspect_ratio"
	case s.Size != "":
		return "size"
	}
	return "width"
}

// Check returns the fault of the field that the model does not take, nil for none. Names are generic except for "seconds" and "size".
func (m VideoModel) Check(s VideoShape) *Fault {
	_, fault := m.Accept(s)
	return fault
}

// Accept is Check. It returns the frame of the request as well.
func (m VideoModel) Accept(s VideoShape) (Frame, *Fault) {
	if fault := m.checkSeconds(s); fault != nil {
		return Frame{}, fault
	}
	frame, fault := m.Frame(s)
	if fault == nil {
		fault = m.checkWords(s)
	}
	if fault == nil {
		fault = m.checkInputs(s)
	}
	seconds, _ := strconv.ParseFloat(s.Seconds, 64) // not a number: 0
	frame.Seconds = int(seconds)
	return frame, fault
}

func (m VideoModel) checkSeconds(s VideoShape) *Fault {
	if s.Seconds == "" || takesAny(m.Seconds) {
		return nil
	}
	given, err := strconv.ParseFloat(s.Seconds, 64)
	if err != nil {
		return InvalidField("seconds", "Invalid request: 'seconds' must be a number of seconds.")
	}
	near, best := "", math.Inf(1)
	for _, word := range m.Seconds {
		seconds, _ := strconv.ParseFloat(word, 64) // a valid number of the vendor's table
		if off := math.Abs(seconds - given); off < best {
			near, best = word, off
		}
	}
	if best == 0 {
		return nil
	}
	return notTaken("seconds", m.Seconds, near)
}

// promptLength returns the length of a prompt as the vendor counts it.
func (m VideoModel) promptLength(s VideoShape) int {
	if m.UTF16 {
		return s.Prompt + s.PromptUTF16
	}
	return s.Prompt
}

func (m VideoModel) checkWords(s VideoShape) *Fault {
	switch {
	case s.FPS != 0 && m.FPS == 0:
		return noField("fps")
	case s.FPS != 0 && m.FPS != AnyFPS && s.FPS != m.FPS:
		return notTaken("fps", []string{strconv.Itoa(m.FPS)}, "")
	case m.N != AnyNumber && s.N > max(m.N, 1):
		return InvalidField("n", "Invalid request: 'n' is %d at most with this model.", max(m.N, 1))
	case s.GenerateAudio != nil && *s.GenerateAudio && m.Audio == AudioNever:
		return InvalidField("generate_audio", "Invalid request: this model makes no sound.")
	case s.GenerateAudio != nil && !*s.GenerateAudio && m.Audio == AudioAlways:
		return InvalidField("generate_audio", "Invalid request: this model always makes sound.")
	case s.Negative && !m.Negative:
		return noField("negative_prompt")
	case s.Seed && !m.Seed:
		return noField("seed")
	case m.MaxPrompt > 0 && m.promptLength(s) > m.MaxPrompt:
		return InvalidField("prompt", "Invalid request: 'prompt' has %d characters, and this model takes %d.", m.promptLength(s), m.MaxPrompt)
	case m.NeedsPrompt && s.Prompt == 0:
		return InvalidField("prompt", "Invalid request: this model needs a 'prompt'.")
	case m.NeedsInput && len(s.Inputs) == 0:
		return InvalidField(InputField(m.Inputs[0].Role), "Invalid request: this model needs '%s'.", InputField(m.Inputs[0].Role))
	}
	return nil
}

// InputField returns the generic format's name for inputs of a role.
func InputField(role InputRole) string {
	switch role {
	case LastFrame:
		return "last_image"
	case Reference:
		return "reference_images"
	case SourceVideo, ExtendVideo:
		return "video"
	case SourceAudio:
		return "audio"
	default:
		return "image"
	}
}

func (m VideoModel) checkInputs(s VideoShape) *Fault {
	count := make(map[InputRole]int)
	for _, input := range s.Inputs {
		field := InputField(input.Role)
		at := slices.IndexFunc(m.Inputs, func(known VideoInput) bool { return known.Role == input.Role })
		if at < 0 {
			return noField(field)
		}
		known := m.Inputs[at]
		count[input.Role]++
		if most := max(known.Max, 1); count[input.Role] > most {
			return InvalidField(field, "Invalid request: '%s' has more inputs than this model accepts, which is %d.", field, most)
		}
		if known.With != nil && !s.Has(*known.With) {
			return InvalidField(field, "Invalid request: this model takes '%s' only together with '%s'.", field, InputField(*known.With))
		}
		if fault := known.check(field, input); fault != nil {
			return fault
		}
	}
	for _, known := range m.Inputs {
		if field := InputField(known.Role); known.Needed && !s.Has(known.Role) {
			return InvalidField(field, "Invalid request: this model needs '%s'.", field)
		}
	}
	if m.Apart && s.Has(Reference) && (s.Has(FirstFrame) || s.Has(LastFrame)) {
		return InvalidField("reference_images",
			"Invalid request: this model does not accept 'reference_images' together with 'image' or 'last_image'.")
	}
	return nil
}

// pictureTypes are the types that nearly every vendor accepts.
func pictureTypes() []string { return []string{"image/png", "image/jpeg", "image/webp"} }

// types returns the accepted media types, nil for any.
func (v VideoInput) types() []string {
	if v.Types == nil && (v.Role == FirstFrame || v.Role == LastFrame || v.Role == Reference) {
		return pictureTypes()
	}
	return v.Types
}

func (v VideoInput) check(field string, input InputShape) *Fault {
	types := v.types()
	switch {
	case input.Link && v.NoLinks:
		return InvalidField(field, "Invalid request: this model takes '%s' as bytes only, not as a link.", field)
	case input.Link:
		return nil
	case v.LinksOnly:
		return InvalidField(field, "Invalid request: this model takes '%s' as a link only, not as bytes.", field)
	case v.MaxBytes > 0 && input.Bytes > v.MaxBytes:
		return InvalidField(field, "Invalid request: '%s' has %d bytes, and this model takes %d.", field, input.Bytes, v.MaxBytes)
	case types != nil && !slices.Contains(types, input.Type):
		return InvalidField(field, "Invalid request: '%s' is of a kind that this model does not take: it takes %s.", field,
			strings.Join(types, ", "))
	}
	return nil
}

func takesAny(words []string) bool { return len(words) == 1 && words[0] == "*" }

func noField(field string) *Fault {
	return InvalidField(field, "Invalid request: this model does not take '%s'.", field)
}

func notTaken(field string, takes []string, near string) *Fault {
	text := fmt.Sprintf("Invalid request: '%s' is not possible with this model, which takes %s.", field, strings.Join(takes, ", "))
	if near != "" && len(takes) > 1 {
		text += " The nearest is " + near + "."
	}
	return InvalidField(field, "%s", text)
}
