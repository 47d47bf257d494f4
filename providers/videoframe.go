package providers

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Frame is a request's size in the model's values: Size, AspectRatio and Resolution if the model has them, "" for open ones.
type Frame struct {
	Size, AspectRatio, Resolution string
	// Seconds is the length without a fraction, 0 if the request leaves it open. Accept sets it.
	Seconds int
}

// Frame maps a request's size to the model's values. It rounds nothing: a size that does not fit is a fault.
func (m VideoModel) Frame(s VideoShape) (Frame, *Fault) {
	frame := Frame{Size: s.Size, AspectRatio: s.AspectRatio, Resolution: s.Resolution}
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
		if m.AspectRatios != nil && ratio == "" || m.Resolutions != nil && !takesAny(m.Resolutions) &&
			!slices.Contains(m.Resolutions, resolution) {
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
			return frame, InvalidField(field, "Invalid request: '%s' contradicts 'aspect_ratio' or 'resolution'.", field)
		}
	case pixels:
		return frame, noField(field)
	case s.Size != "" && m.Sizes == nil:
		return frame, noField(field)
	case s.Size != "" && !takesAny(m.Sizes) && !slices.Contains(m.Sizes, s.Size):
		return frame, notTaken(field, m.Sizes, "")
	case m.Sizes != nil && !takesAny(m.Sizes) && s.Size == "" &&
		(s.AspectRatio != "" && m.AspectRatios == nil || s.Resolution != "" && m.Resolutions == nil):
		size, fault := m.sizeOf(s)
		return Frame{Size: size}, fault
	}
	for _, word := range [...]struct {
		name, value string
		known       []string
	}{{"aspect_ratio", frame.AspectRatio, m.AspectRatios}, {"resolution", frame.Resolution, m.Resolutions}} {
		switch {
		case word.value == "" || takesAny(word.known):
		case word.known == nil && pixels: // the pixels define it
		case word.known == nil:
			return frame, noField(word.name)
		case !slices.Contains(word.known, word.value):
			return frame, notTaken(word.name, word.known, "")
		}
	}
	return frame, nil
}

// frames returns the model's sizes, for a message.
func (m VideoModel) frames() string {
	var words []string
	for _, list := range [...][]string{m.AspectRatios, m.Resolutions} {
		if list != nil && !takesAny(list) {
			words = append(words, strings.Join(list, ", "))
		}
	}
	return strings.Join(words, " in ")
}

// sizeOf returns the first of the model's sizes that matches the words of a request.
func (m VideoModel) sizeOf(s VideoShape) (string, *Fault) {
	for _, size := range m.Sizes {
		width, height := pixelsOf(size)
		if width == 0 || s.AspectRatio != "" && wordsOf([]string{s.AspectRatio}, width, height) == "" || s.Resolution != "" &&
			resolutionOf(width, height) != s.Resolution {
			continue
		}
		return size, nil
	}
	if s.AspectRatio != "" {
		return "", notTaken("aspect_ratio", m.Sizes, "")
	}
	return "", notTaken("resolution", m.Sizes, "")
}

// sameRatio is the largest difference of two ratios with the same name: 854x480 is called 16:9.
const sameRatio = 0.01

// wordsOf returns the word for the aspect ratio of pixels, "" for none.
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

// resolutionOf returns the word for pixels, by the shorter side.
func resolutionOf(width, height int) string {
	const fourK = 2160
	if short := min(width, height); short != fourK {
		return strconv.Itoa(short) + "p"
	}
	return "4k"
}

// Makes reports whether the model may make a video of a ResolutionWord with sound ("true") or without ("false"). "" matches all.
func (m VideoModel) Makes(resolution, audio string) bool {
	if audio == "true" && m.Audio == AudioNever || audio == "false" && m.Audio == AudioAlways {
		return false
	}
	if resolution == "" || m.Resolutions == nil && m.Sizes == nil || takesAny(m.Resolutions) || takesAny(m.Sizes) {
		return true
	}
	is := func(word string) bool {
		width, height := pixelsOf(word)
		return ResolutionWord(word, 0, 0) == resolution || width > 0 && resolutionOf(width, height) == resolution
	}
	return slices.ContainsFunc(m.Resolutions, is) || slices.ContainsFunc(m.Sizes, is)
}

// ResolutionWord returns the standard word for a resolution given as a word, or as pixels without one; "" for neither.
func ResolutionWord(word string, width, height int) string {
	const fourK, asPixels = "4k", "2160p"
	word = strings.ToLower(strings.TrimSpace(word))
	switch {
	case word == asPixels:
		return fourK
	case word == "" && width > 0 && height > 0:
		return resolutionOf(width, height)
	}
	return word
}

// pixelsOf reads "1280x720"; 0, 0 for another text.
func pixelsOf(size string) (width, height int) {
	w, h, _ := strings.Cut(size, "x")
	width, errW := strconv.Atoi(w)
	height, errH := strconv.Atoi(h)
	if errW != nil || errH != nil {
		return 0, 0
	}
	return width, height
}

func nearestSize(sizes []string, width, height int) string {
	return slices.MinFunc(sizes, func(a, b string) int {
		return cmp.Compare(distance(a, width, height), distance(b, width, height))
	})
}

func distance(size string, width, height int) float64 {
	w, h := pixelsOf(size)
	return math.Hypot(float64(w-width), float64(h-height))
}
