package calllog

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// CheckLine fails unless a record's line is one line of JSON, by whose id it is found, and with no members but its own.
func CheckLine(t *testing.T, r *Record) {
	t.Helper()
	packed := string(r.pack(nil))
	unpacked, ok := unpack(nil, packed)
	text := string(unpacked) + "}"
	if !ok {
		t.Fatalf("packed %q", packed)
	}
	if strings.ContainsAny(text, "\n\r") || !json.Valid([]byte(text)) {
		t.Fatalf("line %q", text)
	}
	got, err := parse(text)
	if err != nil || got.Token != "" || got.Fault != "" {
		t.Fatalf("%q: got %+v, %v", text, got, err)
	}
	if m := (Filter{Token: "x"}).matcher(); m.fits(text) {
		t.Fatalf("%q has a token", text)
	}
	if len(r.ID) > 0 && len(r.ID) <= idMost {
		if m := (Filter{ID: r.ID}).matcher(); !m.fits(text) {
			t.Fatalf("%q is not found", text)
		}
	}
}

// Packed is a record as Redis has it, and its line.
func Packed(r *Record) (packed, line string) {
	packed = string(packNumber(r.pack(nil), packSkipped, r.Skipped))
	unpacked, _ := unpack(nil, packed)
	return packed, string(unpacked) + "}"
}

// Unpack unpacks what may be none of ours.
func Unpack(packed string) { _, _ = unpack(nil, packed) }

// KeptAt are the ids of the calls that Redis took at a time.
func (r *Reader) KeptAt(ctx context.Context, ms int64) (map[string]bool, error) {
	return r.keptAt(ctx, ms)
}
