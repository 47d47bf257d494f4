package upstream

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Loose is a string or a number of a vendor's answer.
type Loose string

// Number returns decimal text that is a number of at most 16 characters, "" for anything else.
func (l Loose) Number() string {
	const sense = 16
	s := string(l)
	if _, err := strconv.ParseFloat(s, 64); err != nil || len(s) > sense || strings.Trim(s, "0123456789.") != "" {
		return ""
	}
	return s
}

// Count returns a positive number below 2⁴⁰ without its fraction, 0 for anything else.
func (l Loose) Count() int64 {
	const sense = 1 << 40
	n, err := strconv.ParseFloat(string(l), 64)
	if err != nil || !(0 < n && n < sense) {
		return 0
	}
	return int64(n)
}

// Percent returns a progress of 0 to 100, with a percent sign or without; -1 for anything else.
func (l Loose) Percent() int {
	p, err := strconv.ParseFloat(strings.TrimSuffix(string(l), "%"), 64)
	if err != nil || math.IsNaN(p) {
		return -1
	}
	return int(math.Round(min(100, max(0, p))))
}

// Took returns the time between two times as Time reads them, 0 if one is missing or they are in the wrong order.
func Took(from, until Loose) time.Duration {
	began, ended := from.Time(), until.Time()
	if began.IsZero() || !ended.After(began) {
		return 0
	}
	return ended.Sub(began).Round(time.Millisecond)
}

// Time returns a Unix time in seconds or a time of RFC 3339, the zero time for anything else.
func (l Loose) Time() time.Time {
	const sense = 1 << 40 // seconds
	if at, err := time.Parse(time.RFC3339Nano, string(l)); err == nil {
		return at.UTC()
	}
	seconds, err := strconv.ParseFloat(string(l), 64)
	if err != nil || !(0 < seconds && seconds < sense) {
		return time.Time{}
	}
	return time.UnixMilli(int64(math.Round(seconds * 1000))).UTC()
}

// Pixels returns a whole number up to 2¹⁶, 0 for anything else.
func (l Loose) Pixels() int {
	const sense = 1 << 16
	n, err := strconv.Atoi(string(l))
	if err != nil || n < 0 || n > sense {
		return 0
	}
	return n
}

// Dimensions reads "1280x720"; zeros for anything else.
func (l Loose) Dimensions() (width, height int) {
	w, h, _ := strings.Cut(string(l), "x")
	width, height = Loose(w).Pixels(), Loose(h).Pixels()
	if width == 0 || height == 0 {
		return 0, 0
	}
	return width, height
}
