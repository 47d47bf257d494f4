package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"modelrelay/providers/pricing"
)

// Size is a number of bytes, in the form 64MiB, 2GiB or a plain number.
type Size int64

// String formats the size in the largest unit that divides it.
func (s Size) String() string {
	units := []string{"TiB", "GiB", "MiB", "KiB"}
	for i, unit := range units {
		one := Size(1) << (10 * (len(units) - i))
		if s >= one && s%one == 0 {
			return strconv.FormatInt(int64(s/one), 10) + unit
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// UnmarshalText parses a size.
func (s *Size) UnmarshalText(text []byte) error {
	n, err := humanize.ParseBytes(string(text))
	if err != nil || n > math.MaxInt64 || strings.HasPrefix(string(text), "-") {
		return fmt.Errorf("%q is not a size such as 64MiB or 2GiB", text)
	}
	*s = Size(n)
	return nil
}

// Amount is a decimal amount of money in its original text, so that it is not rounded; "" is absent.
type Amount string

// rate returns the rate of the amount for per units; nil if absent.
func (a Amount) rate(per int64) (*pricing.Rate, error) {
	if a == "" {
		return nil, nil //nolint:nilnil // an absent price is nil
	}
	rate, err := pricing.ParseRate(string(a), per)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", string(a), err)
	}
	return rate, nil
}

// units are the permitted units of prices, in tokens.
func units() map[string]int64 { return map[string]int64{"1": 1, "1K": 1_000, "1M": 1_000_000} }

// parseDuration parses 500ms, 30s, 10m, 72h.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 30s, 10m or 72h", text)
	}
	return d, nil
}

// formatDuration formats a duration without trailing zero units.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// ParseTime parses an RFC 3339 time or a date, which means its start in UTC. "" is the zero time.
func ParseTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil && !t.IsZero() { // the zero time means absent
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is neither a date (2027-01-31) nor an RFC 3339 time", text)
}

// fileMark is the prefix of a file name in ${file:PATH}.
const fileMark = "file:"

// maxSecretFile bounds a file that ${file:PATH} reads, in bytes: credentials are short, and a service account has 3 KB.
const maxSecretFile = 64 << 10

// expand replaces every ${NAME} by the value of the environment variable and every ${file:PATH} by the text of a file without its trailing
// line end; $${ means a literal ${. The value is always text, never YAML.
func expand(text string, env, file func(string) (string, error)) (string, error) {
	var out strings.Builder
	for {
		at := strings.Index(text, "${")
		if at < 0 {
			out.WriteString(text)
			return out.String(), nil
		}
		if at > 0 && text[at-1] == '$' {
			out.WriteString(text[:at-1] + "${")
			text = text[at+2:]
			continue
		}
		name, rest, found := strings.Cut(text[at+2:], "}")
		path, isFile := strings.CutPrefix(name, fileMark)
		if !found || !isFile && !isVariable(name) || isFile && path == "" {
			return "", errors.New("${ begins the name of an environment variable, as in ${NAME}, or of a file, as in ${file:PATH}; write $${ for the characters themselves")
		}
		from := env
		if isFile {
			name, from = path, file
		}
		value, err := from(name)
		if err != nil {
			return "", err
		}
		out.WriteString(text[:at] + value)
		text = rest
	}
}

func isVariable(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
