package activities

import (
	"fmt"
	"time"
)

// Duration stands in histories and heartbeats as people read it, "6h0m0s", not as nanoseconds.
type Duration time.Duration

// String writes it as time.Duration does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes String's form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("read a duration: %w", err)
	}
	*d = Duration(parsed)
	return nil
}
