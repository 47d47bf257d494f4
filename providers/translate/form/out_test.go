package form_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// writeAll uses each of Out's methods once.
func writeAll(o *form.Out, long []byte) {
	o.Begin()
	o.Key("a")
	o.BeginArray()
	o.Int(-1)
	o.JSON("?", true)
	o.JSON("null")
	o.String("x\"\n")
	o.Text(rawjson.Text(`"\u00e9"`))
	o.Text(nil)
	o.Raw([]byte(`{"b":1}`))
	o.Raw(nil)
	o.Quoted([]byte("c"), long, []byte(`\n`))
	o.Quoted()
	o.BeginArray()
	o.EndArray()
	o.EndArray()
	o.Field("skipped", nil)
	o.Field("d", []byte("2"))
	o.JSON("")
	o.JSON(`"e":3,"f":null`)
	o.Key("g")
	o.Begin()
	o.End()
	o.Key("h")
	o.DataURL(form.Media{Type: "image/png", Data: long})
	o.End()
}

func TestOut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("A", 5000)
	want := `{"a":[-1,true,null,"x\"\n","\u00e9","",{"b":1},null,"c` + long +
		`\n","",[]],"d":2,"e":3,"f":null,"g":{},"h":"data:image/png;base64,` + long + `"}`
	copied := new(form.Out)
	writeAll(copied, []byte(long))
	if got := string(copied.Bytes()); got != want {
		t.Errorf("copied: got %s", got)
	}
	if copied.Len() != len(want) {
		t.Errorf("length: got %d, want %d", copied.Len(), len(want))
	}

	span := []byte(long)
	referring := form.NewPayload()
	writeAll(referring, span)
	payload := referring.Payload()
	got, err := io.ReadAll(payload.Reader())
	if err != nil || string(got) != want {
		t.Errorf("referred to: got %s, %v", got, err)
	}
	referred := 0
	for _, piece := range payload {
		if &piece[0] == &span[0] {
			referred++
		}
	}
	if referred != 2 {
		t.Errorf("the long value is referred to %d times in %d pieces, want twice", referred, len(payload))
	}
	if !json.Valid(got) {
		t.Error("not JSON")
	}
}

func TestOutEvents(t *testing.T) {
	t.Parallel()
	o := new(form.Out)
	for range 2 {
		o.Plain("data: ")
		o.Begin()
		o.Key("a")
		o.Int(1)
		o.End()
		o.Plain("\n\n")
	}
	if got := string(o.Bytes()); got != "data: {\"a\":1}\n\ndata: {\"a\":1}\n\n" {
		t.Errorf("got %q", got)
	}
	o.Reset(1 << 10)
	o.Int(5)
	if got := string(o.Bytes()); got != "5" {
		t.Errorf("after a reset: got %q", got)
	}
}

func TestOutShapes(t *testing.T) {
	t.Parallel()
	o := new(form.Out)
	o.JSON(`{"a":[{"b":?,"c":?},?`, rawjson.Text(`"x\n"`), "y\n", rawjson.Value(`{}`))
	o.JSON(`]`)
	o.JSON(`"d":?,"e":{"f":[?,?]}`, []byte(`\"`), int64(-1), true)
	o.JSON(`"g":?,"h":?`, rawjson.Text(nil), rawjson.Value(nil))
	o.JSON(`}`)
	const want = `{"a":[{"b":"x\n","c":"y\n"},{}],"d":"\"","e":{"f":[-1,true]},"g":"","h":null}`
	if got := string(o.Bytes()); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestOutKeepsItsMemory(t *testing.T) {
	o := new(form.Out)
	text, word := rawjson.Text(`"hello"`), strings.Repeat("word", 20)
	if n := testing.AllocsPerRun(100, func() {
		o.Reset(1 << 10)
		o.JSON(`{"a":?,"n":?,"s":?`, text, int64(len(text)+1000), word)
		o.JSON(`,"d":[?]}`, rawjson.Value(text))
	}); n > 0 {
		t.Errorf("%g allocations", n)
	}
	o.Raw(bytes.Repeat([]byte("1"), 2<<10))
	o.Reset(1 << 10)
	if got := cap(o.Bytes()); got > 1<<10 {
		t.Errorf("%d bytes are held", got)
	}
}
