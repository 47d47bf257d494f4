package calllog

import (
	"encoding/json"
	"strings"
	"testing"
)

// CheckLine fails unless a record's line is one line of JSON, by whose id it is found, and with no members but its own.
func CheckLine(t *testing.T, r *Record) {
	t.Helper()
	text := strings.TrimSuffix(string(appendEnd(r.appendOpen(nil), r.Skipped)), "\n")
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

// Lines are the records as a full block has them, and the block as Redis has it.
func Lines(records []Record) (lines, packed []byte) {
	for i := range records {
		lines = appendEnd(records[i].appendOpen(lines), records[i].Skipped)
	}
	return lines, Pack(lines)
}

// Pack compresses lines.
func Pack(lines []byte) []byte { return newEncoder().EncodeAll(lines, nil) }
