package upstream

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// Loose is a member of a vendor's answer that is a string or a number. Any other type reads as "". A member of an undocumented type
// must not lose a paid job.
type Loose string

// UnmarshalJSON implements json.Unmarshaler.
func (l *Loose) UnmarshalJSON(raw []byte) error {
	*l = ""
	switch {
	case len(raw) > 0 && raw[0] == '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		*l = Loose(s)
	case len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'):
		*l = Loose(raw)
	}
	return nil
}

// LooseOf reads one value; "" for none.
func LooseOf(raw json.RawMessage) (l Loose) {
	_ = json.Unmarshal(raw, &l) // an error leaves ""
	return l
}

// Words reads an error of the usual form {"code","message"}. Anything else reads as "".
func Words(raw json.RawMessage) (code, message string) {
	var said struct {
		Code    Loose `json:"code"`
		Message Loose `json:"message"`
	}
	_ = json.Unmarshal(raw, &said) // an error leaves both ""
	return string(said.Code), string(said.Message)
}

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

// Took returns the time between two Unix times in seconds, 0 if one is missing or they are in the wrong order.
func Took(from, until Loose) time.Duration {
	const sense = 1 << 40 // seconds
	began, err := strconv.ParseFloat(string(from), 64)
	ended, wrong := strconv.ParseFloat(string(until), 64)
	if err != nil || wrong != nil || !(0 < began && began < ended && ended < sense) {
		return 0
	}
	return time.Duration((ended - began) * float64(time.Second)).Round(time.Millisecond)
}

// Time returns a Unix time in seconds, the zero time for anything else.
func (l Loose) Time() time.Time {
	const sense = 1 << 40 // seconds
	seconds, err := strconv.ParseFloat(string(l), 64)
	if err != nil || !(0 < seconds && seconds < sense) {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0).UTC()
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
