package body

import (
	"bytes"
	"errors"
	"strconv"

	"modelrelay/providers/rawjson"
)

// MaxWhole is the upper bound of Whole. The product of two such numbers fits in an int64.
const MaxWhole = 1 << 31

// Whole returns the integer part of a positive number, or of a string with one, because some parsers accept it. It returns 0 for anything
// else and at most MaxWhole.
func Whole(raw rawjson.Value) int64 {
	if raw.IsText() {
		raw = raw.Text().Decoded()
	}
	if len(raw) == 0 || raw[0] != '+' && raw[0] != '.' && (raw[0] < '0' || raw[0] > '9') {
		return 0 // negative, or a word such as inf, which ParseFloat accepts
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

// Decimal formats a JSON number without an exponent.
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
