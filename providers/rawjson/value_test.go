package rawjson_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"modelrelay/providers/rawjson"
)

func TestMembers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ value, want string }{
		{`{}`, ``},
		{` {} `, ``},
		{`[1,2]`, ``},
		{`"text"`, ``},
		{``, ``},
		{`{"a":1}`, `"a"=1;`},
		{"{ \"a\" : 1 ,\n\"b\"\t: [ {\"c\":\"]}\"} , 2 ]\r}", `"a"=1;"b"=[ {"c":"]}"} , 2 ];`},
		{`{"a":1,"a":2}`, `"a"=1;"a"=2;`},
		{`{"a\"b":"c\\\"","d":"\\"}`, `"a\"b"="c\\\"";"d"="\\";`},
		{`{"":null,"t":true,"f":false,"n":-1.5e+3}`, `""=null;"t"=true;"f"=false;"n"=-1.5e+3;`},
		{`{"a":{"b":[]},"c":[[]]}`, `"a"={"b":[]};"c"=[[]];`},
	} {
		var got strings.Builder
		for name, value := range rawjson.Trim([]byte(test.value)).Members() {
			fmt.Fprintf(&got, "%s=%s;", []byte(name), value)
		}
		if got.String() != test.want {
			t.Errorf("members of %s: got %s, want %s", test.value, got.String(), test.want)
		}
	}
}

func TestItems(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ value, want string }{
		{`[]`, ``},
		{`[ ]`, ``},
		{`{"a":1}`, ``},
		{`[1]`, `0=1;`},
		{`[ "a,]" , {"b":[1,2]},null ]`, `0="a,]";1={"b":[1,2]};2=null;`},
	} {
		var got strings.Builder
		for i, value := range rawjson.Value(test.value).Items() {
			fmt.Fprintf(&got, "%d=%s;", i, value)
		}
		if got.String() != test.want {
			t.Errorf("items of %s: got %s, want %s", test.value, got.String(), test.want)
		}
		if n := rawjson.Value(test.value).Len(); n != strings.Count(test.want, ";") {
			t.Errorf("length of %s: got %d", test.value, n)
		}
	}
}

func TestIterationEnds(t *testing.T) {
	t.Parallel()
	for name := range rawjson.Value(`{"a":1,"b":2}`).Members() {
		if !name.Is("a") {
			t.Errorf("went on to %s", name)
		}
		break
	}
	for i := range rawjson.Value(`[1,2]`).Items() {
		if i != 0 {
			t.Errorf("went on to %d", i)
		}
		break
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	value := rawjson.Value(`{"a":{"b":[{"c":1}],"b":"last"},"\u0061b":2,"n":null}`)
	for _, test := range []struct {
		path []string
		want string
	}{
		{[]string{"a", "b"}, `"last"`},
		{[]string{"ab"}, `2`},
		{[]string{"n"}, `null`},
		{[]string{"n", "m"}, ``},
		{[]string{"x"}, ``},
		{nil, string(value)},
	} {
		if got := value.At(test.path...); string(got) != test.want {
			t.Errorf("%v: got %s, want %s", test.path, got, test.want)
		}
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`{}`: "object", `[]`: "array", `""`: "text", `-1`: "number", `0`: "number", `true`: "true", `false`: "false",
		`null`: "absent", ``: "absent",
	} {
		v := rawjson.Value(value)
		got := map[string]bool{
			"object": v.IsObject(), "array": v.IsArray(), "text": v.IsText(), "number": v.IsNumber(),
			"true": v.True(), "false": v.False(), "absent": v.Absent(),
		}
		for kind, is := range got {
			if is != (kind == want) {
				t.Errorf("%q is %s: %t", value, kind, is)
			}
		}
		if (v.Text() != nil) != v.IsText() {
			t.Errorf("%q as a text is %q", value, v.Text())
		}
	}
}

func TestSays(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		``: false, `null`: false, `false`: false, `""`: false, `[]`: false, "[ \n]": false, `{}`: false, `{ }`: false,
		`true`: true, `0`: true, `" "`: true, `[null]`: true, `[ [] ]`: true, `{"a":null}`: true,
	} {
		if got := rawjson.Value(value).IsSet(); got != want {
			t.Errorf("%q: got %t", value, got)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		value string
		want  int64
		ok    bool
	}{
		{"0", 0, true},
		{"-7", -7, true},
		{"1e3", 1000, true},
		{"2.0", 2, true},
		{"2.5", 0, false},
		{"9223372036854775807", 9223372036854775807, true},
		{"1e300", 0, false},
		{`"1"`, 0, false},
		{"null", 0, false},
		{"", 0, false},
	} {
		if got, ok := rawjson.Value(test.value).Int(); got != test.want || ok != test.ok {
			t.Errorf("%s as a whole number: got %d, %t", test.value, got, ok)
		}
	}
	if f, ok := rawjson.Value("2.5").Float(); f != 2.5 || !ok {
		t.Errorf("2.5 as a number: got %g, %t", f, ok)
	}
	if _, ok := rawjson.Value("true").Float(); ok {
		t.Error("true is no number")
	}
}

// FuzzValue walks any bytes: nothing panics, and of a valid document the walk sees what encoding/json sees.
func FuzzValue(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{"a":[1,{"b":"\\\""}],"c":"\u00e9"}`, `[[[[]]]]`, `{"a"`, `{"a":}`, `{,}`, `["a]`, `{"a":1,}`, `"\`, `[1 2]`, "{\"\xff\":1}",
		`{"a":1}{"b":2}`, `]`, `{"a" 1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		v := rawjson.Trim(document)
		walked := walk(v, 0)
		if !rawjson.Valid(document) || !json.Valid(document) {
			return
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, document); err != nil {
			t.Fatal(err)
		}
		if walked != compact.String() {
			t.Errorf("walked %s, want %s", walked, compact.String())
		}
	})
}

// walk writes a value anew from its parts.
func walk(v rawjson.Value, depth int) string {
	if depth > 50 {
		return string(v)
	}
	var out strings.Builder
	separator := ""
	switch {
	case v.IsObject():
		out.WriteByte('{')
		for name, member := range v.Members() {
			out.WriteString(separator + string(name) + ":" + walk(member, depth+1))
			separator = ","
		}
		out.WriteByte('}')
	case v.IsArray():
		out.WriteByte('[')
		for _, item := range v.Items() {
			out.WriteString(separator + walk(item, depth+1))
			separator = ","
		}
		out.WriteByte(']')
	default:
		return string(v)
	}
	return out.String()
}

func BenchmarkGet(b *testing.B) {
	value := rawjson.Value(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"content":"hello"}}]}`)
	b.ReportAllocs()
	for b.Loop() {
		for _, choice := range value.Get("choices").Items() {
			if choice.At("delta", "content").Text() == nil {
				b.Fatal("no content")
			}
		}
	}
}
