package body

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"modelrelay/providers/rawjson"
)

// MaxWhole is what a larger number counts as: none is meant that large, and two of them can be multiplied.
const MaxWhole = 1 << 31

// Whole returns a number above 0, or one in a string, as some readers take it; 0 for anything else. What follows its point
// does not count, and what is too large to be meant counts as MaxWhole.
func Whole(raw rawjson.Value) int64 {
	if raw.IsText() {
		raw = raw.Text().Decoded()
	}
	if len(raw) == 0 || raw[0] != '+' && raw[0] != '.' && (raw[0] < '0' || raw[0] > '9') {
		return 0 // below 0, or a word: ParseFloat knows some
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return 0
		}
		n = int64(min(f, MaxWhole))
	}
	return min(n, MaxWhole)
}

// Integer reads a JSON number without a fraction, which may be written with one or with an exponent.
func Integer(raw []byte) (int64, bool) {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.Abs(f) > 1<<53 || f != math.Trunc(f) {
		return 0, false
	}
	return int64(f), true
}

// Decimal writes a JSON number without an exponent.
func Decimal(raw []byte) string {
	if !bytes.ContainsAny(raw, "eE") {
		return string(raw)
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return string(raw)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}
