package providers

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// VideoModel is what one model of a vendor takes, as the vendor's own documents say. A list that is nil names a field that
// the model does not have, so that a request which sets it is refused; AnyWord is a list that takes everything.
type VideoModel struct {
	// Seconds are the lengths it makes, Sizes what it makes in pixels ("1280x720"), AspectRatios and Resolutions the words it
	// takes for them, in lower case. A request's pixels are read as words, and words as pixels, where the model knows only
	// the others.
	Seconds, Sizes, AspectRatios, Resolutions []string
	// FPS is the one frame rate that it has, AnyFPS where it takes several, 0 where it takes none.
	FPS int
	// Inputs are what it takes beside the prompt.
	Inputs []VideoInput
	// Apart: references cannot stand beside first and last frames.
	Apart bool
	// Audio says whether the videos have sound.
	Audio VideoAudio
	// N is how many videos one job makes at most, 0 means one, AnyNumber as many as are asked for.
	N int
	// MaxPrompt bounds the prompt in characters, 0 where the vendor does not say. NeedsPrompt: there must be one, whatever
	// the inputs. Negative: a negative prompt is taken.
	MaxPrompt             int
	NeedsPrompt, Negative bool
	// Seed: a seed is taken.
	Seed bool
	// NeedsInput: there must be one of the Inputs.
	NeedsInput bool
}

// AnyFPS and AnyNumber take every number.
const (
	AnyFPS    = -1
	AnyNumber = -1
)

// AnyWord is a list of a VideoModel that takes everything.
func AnyWord() []string { return []string{"*"} }

// AnyVideoModel is a model of a vendor whose table is not known, such as a compatible server: it takes every word, one
// video, and the inputs.
func AnyVideoModel(inputs ...VideoInput) VideoModel {
	return VideoModel{
		Seconds: AnyWord(), Sizes: AnyWord(), AspectRatios: AnyWord(), Resolutions: AnyWord(), FPS: AnyFPS, Audio: AudioOption,
		Negative: true, Seed: true, Inputs: inputs,
	}
}

// VideoAudio says whether a model's videos have sound.
type VideoAudio string

// What there is. The zero VideoAudio is a model that makes no sound.
const (
	AudioNever  VideoAudio = ""
	AudioOption VideoAudio = "optional" // as the request says
	AudioAlways VideoAudio = "always"
)

// VideoInput is one role of inputs that a model takes.
type VideoInput struct {
	Role InputRole
	// Max is how many, 0 means one.
	Max int
	// Types are the media types taken, nil for PNG, JPEG and WebP of images, and for whatever comes of others.
	Types []string
	// MaxBytes bounds an upload, 0 where the vendor does not say.
	MaxBytes int64
	// NoLinks: only uploads are taken. LinksOnly: only links are.
	NoLinks, LinksOnly bool
	// With is a role that must be there as well, FirstFrame for a LastFrame; nil for none.
	With *InputRole
}

// VideoShape is what of a request a VideoModel is asked about. It stands in workflow histories.
type VideoShape struct {
	Seconds       string       `json:"seconds,omitempty"`
	Size          string       `json:"size,omitempty"`
	Width         int          `json:"width,omitempty"`
	Height        int          `json:"height,omitempty"`
	AspectRatio   string       `json:"aspect_ratio,omitempty"`
	Resolution    string       `json:"resolution,omitempty"`
	FPS           int          `json:"fps,omitempty"`
	N             int          `json:"n,omitempty"`
	GenerateAudio *bool        `json:"generate_audio,omitempty"`
	Negative      bool         `json:"negative,omitempty"`
	Seed          bool         `json:"seed,omitempty"`
	Prompt        int          `json:"prompt,omitempty"` // in characters
	Inputs        []InputShape `json:"inputs,omitempty"`
}

// InputShape is what a VideoModel is asked of one input.
type InputShape struct {
	Role InputRole `json:"role,omitempty"`
	// Type and Bytes are an upload's; of a link neither is known.
	Type  string `json:"type,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
	Link  bool   `json:"link,omitempty"`
}

// Shape is what of the request a VideoModel is asked about.
func (r VideoRequest) Shape() VideoShape {
	shape := VideoShape{
		Seconds: r.Seconds, Size: r.Size, Width: r.Width, Height: r.Height, AspectRatio: r.AspectRatio, Resolution: r.Resolution,
		FPS: r.FPS, N: r.N, GenerateAudio: r.GenerateAudio, Negative: r.NegativePrompt != "", Seed: r.Seed != nil, Prompt: utf8.RuneCountInString(r.Prompt),
	}
	for _, input := range r.Inputs {
		shape.Inputs = append(shape.Inputs, InputShape{Role: input.Role, Type: input.ContentType, Bytes: input.Size, Link: input.URL != ""})
	}
	return shape
}

// Check tells whether the model takes a request: nil, or the fault of the field that it does not take, with what it takes
// instead. The field's name is that of the generic format but for "seconds" and "size".
func (m VideoModel) Check(s VideoShape) *Fault {
	for _, check := range [...]func(VideoShape) *Fault{m.checkSeconds, m.checkFrame, m.checkWords, m.checkInputs} {
		if fault := check(s); fault != nil {
			return fault
		}
	}
	return nil
}

func (m VideoModel) checkSeconds(s VideoShape) *Fault {
	if s.Seconds == "" || takesAny(m.Seconds) {
		return nil
	}
	given, err := strconv.ParseFloat(s.Seconds, 64)
	if err != nil {
		return InvalidField("seconds", "Invalid request: 'seconds' must hold a number of seconds.")
	}
	near, best := "", math.Inf(1)
	for _, word := range m.Seconds {
		seconds, _ := strconv.ParseFloat(word, 64) // a vendor's own table
		if off := math.Abs(seconds - given); off < best {
			near, best = word, off
		}
	}
	if best == 0 {
		return nil
	}
	return notTaken("seconds", m.Seconds, near)
}

// Frame is a request's size in the words of a model: those of Size, AspectRatio and Resolution that the model has a list for, and
// "" for each that the request says nothing of.
type Frame struct {
	Size, AspectRatio, Resolution string
	Width, Height                 int
}

// Frame reads what a request says of its size in the model's own words. Nothing is rounded: what does not fit is a fault.
func (m VideoModel) Frame(s VideoShape) (Frame, *Fault) {
	frame := Frame{Size: s.Size, AspectRatio: s.AspectRatio, Resolution: s.Resolution, Width: s.Width, Height: s.Height}
	field := "size"
	if s.Size == "" {
		field = "width"
	}
	if (s.Width > 0) != (s.Height > 0) {
		return frame, InvalidField(field, "Invalid request: a size has both a width and a height.")
	}
	pixels := s.Width > 0
	if pixels {
		frame.Size = fmt.Sprintf("%dx%d", s.Width, s.Height)
	}
	switch {
	case m.Sizes != nil && pixels:
		if !takesAny(m.Sizes) && !slices.Contains(m.Sizes, frame.Size) {
			return frame, notTaken(field, m.Sizes, nearestSize(m.Sizes, s.Width, s.Height))
		}
	case pixels && (m.AspectRatios != nil || m.Resolutions != nil):
		ratio, resolution := wordsOf(m.AspectRatios, s.Width, s.Height), resolutionOf(s.Width, s.Height)
		if m.AspectRatios != nil && ratio == "" || m.Resolutions != nil && !takesAny(m.Resolutions) && !slices.Contains(m.Resolutions, resolution) {
			return frame, InvalidField(field, "Invalid request: '%s' is not possible with this model, which makes %s.", field, m.frames())
		}
		frame.Size = ""
		if m.AspectRatios != nil {
			frame.AspectRatio = cmp.Or(s.AspectRatio, ratio)
		}
		if m.Resolutions != nil {
			frame.Resolution = cmp.Or(s.Resolution, resolution)
		}
		if frame.AspectRatio != ratio && ratio != "" || m.Resolutions != nil && frame.Resolution != resolution {
			return frame, InvalidField(field, "Invalid request: '%s' says something else than 'aspect_ratio' or 'resolution'.", field)
		}
	case pixels:
		return frame, noField(field)
	case s.Size != "" && m.Sizes == nil:
		return frame, noField(field)
	case s.Size != "" && !takesAny(m.Sizes) && !slices.Contains(m.Sizes, s.Size):
		return frame, notTaken(field, m.Sizes, "")
	case m.Sizes != nil && !takesAny(m.Sizes) && s.Size == "" && (s.AspectRatio != "" && m.AspectRatios == nil || s.Resolution != "" && m.Resolutions == nil):
		size, fault := m.sizeOf(s)
		if fault != nil {
			return frame, fault
		}
		frame.Size = size
		frame.Width, frame.Height = pixelsOf(size)
		frame.AspectRatio, frame.Resolution = "", ""
		return frame, nil
	}
	for _, word := range [...]struct {
		name, value string
		known       []string
	}{{"aspect_ratio", frame.AspectRatio, m.AspectRatios}, {"resolution", frame.Resolution, m.Resolutions}} {
		switch {
		case word.value == "" || takesAny(word.known):
		case word.known == nil && pixels: // the pixels have said it
		case word.known == nil:
			return frame, noField(word.name)
		case !slices.Contains(word.known, word.value):
			return frame, notTaken(word.name, word.known, "")
		}
	}
	return frame, nil
}

func (m VideoModel) checkFrame(s VideoShape) *Fault {
	_, fault := m.Frame(s)
	return fault
}

// frames are the words of a model's sizes, for a message.
func (m VideoModel) frames() string {
	var words []string
	for _, list := range [...][]string{m.AspectRatios, m.Resolutions} {
		if list != nil && !takesAny(list) {
			words = append(words, strings.Join(list, ", "))
		}
	}
	return strings.Join(words, " in ")
}

// sizeOf is the model's size that words mean: the first that fits.
func (m VideoModel) sizeOf(s VideoShape) (string, *Fault) {
	for _, size := range m.Sizes {
		width, height := pixelsOf(size)
		if width == 0 || s.AspectRatio != "" && wordsOf([]string{s.AspectRatio}, width, height) == "" || s.Resolution != "" && resolutionOf(width, height) != s.Resolution {
			continue
		}
		return size, nil
	}
	if s.AspectRatio != "" {
		return "", notTaken("aspect_ratio", m.Sizes, "")
	}
	return "", notTaken("resolution", m.Sizes, "")
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
	case m.MaxPrompt > 0 && s.Prompt > m.MaxPrompt:
		return InvalidField("prompt", "Invalid request: 'prompt' has %d characters, and this model takes %d.", s.Prompt, m.MaxPrompt)
	case m.NeedsPrompt && s.Prompt == 0:
		return InvalidField("prompt", "Invalid request: this model needs a 'prompt'.")
	case m.NeedsInput && len(s.Inputs) == 0:
		return InvalidField(InputField(m.Inputs[0].Role), "Invalid request: this model needs '%s'.", InputField(m.Inputs[0].Role))
	}
	return nil
}

// InputField is the generic format's name for inputs of a role.
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
	has := func(role InputRole) bool {
		return slices.ContainsFunc(s.Inputs, func(input InputShape) bool { return input.Role == role })
	}
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
			return InvalidField(field, "Invalid request: '%s' holds more than this model takes, which is %d.", field, most)
		}
		if known.With != nil && !has(*known.With) {
			return InvalidField(field, "Invalid request: this model takes '%s' only together with '%s'.", field, InputField(*known.With))
		}
		if fault := known.check(field, input); fault != nil {
			return fault
		}
	}
	if m.Apart && has(Reference) && (has(FirstFrame) || has(LastFrame)) {
		return InvalidField("reference_images", "Invalid request: this model takes no 'reference_images' beside 'image' and 'last_image'.")
	}
	return nil
}

// pictureTypes are what nearly every vendor takes.
func pictureTypes() []string { return []string{"image/png", "image/jpeg", "image/webp"} }

// types are the media types taken, nil for whatever comes.
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
		return InvalidField(field, "Invalid request: '%s' is of a kind that this model does not take: it takes %s.", field, strings.Join(types, ", "))
	}
	return nil
}

func takesAny(words []string) bool { return len(words) == 1 && words[0] == "*" }

// noField is the fault of a field that the model does not have.
func noField(field string) *Fault {
	return InvalidField(field, "Invalid request: this model does not take '%s'.", field)
}

// notTaken is the fault of a value that the model does not take.
func notTaken(field string, takes []string, near string) *Fault {
	text := fmt.Sprintf("Invalid request: '%s' is not possible with this model, which takes %s.", field, strings.Join(takes, ", "))
	if near != "" && len(takes) > 1 {
		text += " The nearest is " + near + "."
	}
	return InvalidField(field, "%s", text)
}

// sameRatio is how far two ratios may be apart and still have one name: 854x480 is called 16:9.
const sameRatio = 0.01

// wordsOf is the one of the words for aspect ratios that pixels have, "" for none.
func wordsOf(known []string, width, height int) string {
	if takesAny(known) {
		divisor := gcd(width, height)
		return fmt.Sprintf("%d:%d", width/divisor, height/divisor)
	}
	for _, word := range known {
		w, h, _ := strings.Cut(word, ":")
		across, _ := strconv.ParseFloat(w, 64)
		up, _ := strconv.ParseFloat(h, 64)
		if up > 0 && math.Abs(float64(width)*up/(float64(height)*across)-1) <= sameRatio {
			return word
		}
	}
	return ""
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// resolutionOf is the word for pixels: that of the shorter side.
func resolutionOf(width, height int) string {
	const fourK = 2160
	if short := min(width, height); short != fourK {
		return strconv.Itoa(short) + "p"
	}
	return "4k"
}

// pixelsOf reads "1280x720"; 0, 0 for another word.
func pixelsOf(size string) (width, height int) {
	w, h, _ := strings.Cut(size, "x")
	width, errW := strconv.Atoi(w)
	height, errH := strconv.Atoi(h)
	if errW != nil || errH != nil {
		return 0, 0
	}
	return width, height
}

// nearestSize is the size with the most alike sides.
func nearestSize(sizes []string, width, height int) string {
	return slices.MinFunc(sizes, func(a, b string) int {
		return cmp.Compare(distance(a, width, height), distance(b, width, height))
	})
}

func distance(size string, width, height int) float64 {
	w, h := pixelsOf(size)
	return math.Hypot(float64(w-width), float64(h-height))
}
