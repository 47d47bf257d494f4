package rawjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"modelrelay/providers/rawjson"
)

// edited passes a document through an Editor in pieces of one size.
func edited(tb testing.TB, document string, size int, edits []rawjson.Edit, keep map[string]int) (string, *rawjson.Editor) {
	tb.Helper()
	var out bytes.Buffer
	e := &rawjson.Editor{To: &out, Edits: edits, Keep: keep}
	for rest := []byte(document); len(rest) > 0; {
		n := min(size, len(rest))
		if wrote, err := e.Write(rest[:n]); err != nil || wrote != n {
			tb.Fatalf("wrote %d, %v", wrote, err)
		}
		rest = rest[n:]
	}
	return out.String(), e
}

var edits = []rawjson.Edit{
	{Name: "id", Value: []byte(`"ours"`)},
	{Name: "store", Value: []byte("true")},
	{Name: "previous", Value: []byte("null"), Only: true},
}

func TestEditor(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ document, want, kept string }{
		"empty": {`{}`, `{"id":"ours","store":true}`, `{}`},
		"added": {`{"a":1}`, `{"a":1,"id":"ours","store":true}`, `{}`},
		"replaced": {
			` { "id" : "theirs" , "store":false,"previous":"x"} `, ` { "id" : "ours" , "store":true,"previous":null} `,
			`{"id":"theirs"}`,
		},
		"scalars": {`{"id":1,"store":null}`, `{"id":"ours","store":true}`, `{"id":1}`},
		"nested":  {`{"id":{"id":["}",{"\"":"]"}]},"store":[[]]}`, `{"id":"ours","store":true}`, `{}`},
		"inner names": {
			`{"a":{"id":1},"b":["id",{"store":"{"}],"store":1}`, `{"a":{"id":1},"b":["id",{"store":"{"}],"store":true,"id":"ours"}`,
			`{}`,
		},
		"escapes":    {`{"a\"":"\\","\u0069d":"\"}","store":"\\\""}`, `{"a\"":"\\","\u0069d":"ours","store":true}`, `{"\u0069d":"\"}"}`},
		"twice":      {`{"id":1,"id":2,"store":0}`, `{"id":"ours","id":"ours","store":true}`, `{"id":1,"id":2}`},
		"two kept":   {`{"status":"done","id":"x","store":1}`, `{"status":"done","id":"ours","store":true}`, `{"status":"done","id":"x"}`},
		"too large":  {`{"status":"123456789","id":"x","store":1}`, `{"status":"123456789","id":"ours","store":true}`, `{"id":"x"}`},
		"trailing":   {`{"id":1,"store":1}{"id":1}`, `{"id":"ours","store":true}{"id":1}`, `{"id":1}`},
		"an array":   {`[{"id":1}]`, `[{"id":1}]`, `{}`},
		"a text":     {`"id"`, `"id"`, `{}`},
		"broken off": {`{"a":"x`, `{"a":"x`, `{}`},
		"nothing":    {` `, ` `, `{}`},
	} {
		for size := range len(test.document) {
			got, e := edited(t, test.document, size+1, edits, map[string]int{"id": 10, "status": 10})
			if got != test.want || string(e.Kept()) != test.kept || e.IsObject() != strings.HasPrefix(strings.TrimSpace(test.document), "{") {
				t.Errorf("%s, in pieces of %d: got %s, kept %s, want %s, %s", name, size+1, got, e.Kept(), test.want, test.kept)
			}
		}
	}
}

// TestEditorKeepsLittle: a member that occurs very often does not make the kept values grow with the document.
func TestEditorKeepsLittle(t *testing.T) {
	t.Parallel()
	document := `{"id":"first"` + strings.Repeat(`,"id":"x"`, 10_000) + `,"status":"done"}`
	_, e := edited(t, document, len(document), nil, map[string]int{"id": 10, "status": 10})
	if kept := e.Kept(); len(kept) > 1024 || !bytes.HasPrefix(kept, []byte(`{"id":"first"`)) || !json.Valid(kept) {
		t.Errorf("%d bytes are kept: %.60s", len(kept), kept)
	}
}

// TestEditorFails: the error of the writer ends it.
func TestEditorFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for after := range 3 {
		e := &rawjson.Editor{To: failing{&after, broken}, Edits: edits}
		if _, err := e.Write([]byte(`{"a":1,"id":2}`)); !errors.Is(err, broken) {
			t.Errorf("after %d writes: %v", after, err)
		}
	}
	silent := &rawjson.Editor{Edits: edits}
	if _, err := silent.Write([]byte(`{"a":1}`)); err != nil {
		t.Error(err)
	}
}

type failing struct {
	left *int
	err  error
}

func (f failing) Write(p []byte) (int, error) {
	if *f.left--; *f.left < 0 {
		return 0, f.err
	}
	return len(p), nil
}

// TestEditorHolds: it holds no value that it does not keep.
func TestEditorHolds(t *testing.T) { //nolint:paralleltest // it counts allocations
	document := []byte(`{"id":"` + strings.Repeat("x", 1<<20) + `","a":"` + strings.Repeat("y", 1<<20) + `"}`)
	kept := rawjson.Value(nil)
	allocated := testing.AllocsPerRun(1, func() {
		e := &rawjson.Editor{Edits: edits, Keep: map[string]int{"id": 10}}
		for piece := range iterPieces(document, 1<<10) {
			_, _ = e.Write(piece)
		}
		kept = e.Kept()
	})
	if allocated > 20 || string(kept) != "{}" {
		t.Errorf("%.0f allocations for 2,048 pieces, kept %d bytes", allocated, len(kept))
	}
}

func iterPieces(document []byte, size int) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for at := 0; at < len(document); at += size {
			if !yield(document[at:min(at+size, len(document))]) {
				return
			}
		}
	}
}

// FuzzEditor: an edited object has the members of the one before, with the edits, whatever its pieces are.
func FuzzEditor(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"id":"a","b":[1,{"id":2}],"store":"\\\""}`, ` {"a":{"\"}":1} , "previous" : null}`, `[1]`,
		`{"a":"\u0069"}`,
	} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, document string, size int) {
		got, _ := edited(t, document, max(1, size), edits, map[string]int{"id": 20})
		whole, _ := edited(t, document, max(1, len(document)), edits, nil)
		if got != whole {
			t.Fatalf("in pieces %q, whole %q", got, whole)
		}
		before := rawjson.Trim([]byte(document))
		if !rawjson.Valid(before) {
			return
		}
		after := rawjson.Trim([]byte(got))
		if !before.IsObject() {
			if got != document {
				t.Fatalf("%q became %q", document, got)
			}
			return
		}
		want := make(map[string]string)
		for name, value := range before.Members() {
			want[name.String()] = string(value)
		}
		for _, edit := range edits {
			if _, there := want[edit.Name]; there || !edit.Only {
				want[edit.Name] = string(edit.Value)
			}
		}
		has := make(map[string]string)
		for name, value := range after.Members() {
			has[name.String()] = string(value)
		}
		if !rawjson.Valid(after) || !maps.Equal(has, want) {
			t.Fatalf("%q became %q", document, got)
		}
	})
}

func BenchmarkEditor(b *testing.B) {
	document := []byte(`{"id":"x","output":[{"type":"image","result":"` + strings.Repeat("abcd", 1<<18) + `"}],"text":"` +
		strings.Repeat(`a\nb`, 1<<16) + `"}`)
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		e := &rawjson.Editor{Edits: edits, Keep: map[string]int{"id": 10}}
		for piece := range iterPieces(document, 32<<10) {
			_, _ = e.Write(piece)
		}
	}
}
