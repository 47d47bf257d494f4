package body_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"modelrelay/api/body"
)

// shown replaces the null id of an answer, or the upstream's, by one of ours.
func shown() func(io.ReadCloser) io.ReadCloser {
	const name = `"previous_response_id":`
	return body.Replaced([]byte(name+`"resp_0"`), []byte(name+"null"), []byte(name+" null"), []byte(name+`"resp_up"`),
		[]byte(name+` "resp_up"`))
}

// TestReplaced: the text is written wherever the answer has an old one, in whichever pieces it comes, and nothing else changes.
func TestReplaced(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ answer, want string }{
		{`{"id":"a","previous_response_id":null,"text":"x"}`, `{"id":"a","previous_response_id":"resp_0","text":"x"}`},
		{"{\n \"previous_response_id\": null\n}", "{\n \"previous_response_id\":\"resp_0\"\n}"},
		{
			`data: {"previous_response_id":null}` + "\n\n" + `data: {"response":{"previous_response_id":null}}` + "\n\n",
			`data: {"previous_response_id":"resp_0"}` + "\n\n" + `data: {"response":{"previous_response_id":"resp_0"}}` + "\n\n",
		},
		{`{"previous_response_id":"resp_up","id":"resp_up"}`, `{"previous_response_id":"resp_0","id":"resp_up"}`},
		{`{"previous_response_id": "resp_up"}`, `{"previous_response_id":"resp_0"}`},
		{`{"previous_response_id":"resp_upper"}`, ""},
		{`{"text":"\"previous_response_id\":null","previous_response_id":"resp_1"}`, ""},
		{`{"previous_response_id":nul`, ""},
		{`"`, ""},
		{``, ""},
	} {
		want := test.want
		if want == "" {
			want = test.answer
		}
		for name, in := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "with its end": iotest.DataErrReader,
		} {
			got, err := io.ReadAll(iotest.OneByteReader(shown()(io.NopCloser(in(strings.NewReader(test.answer))))))
			if err != nil || string(got) != want {
				t.Errorf("%s %s: got %s, %v", test.answer, name, got, err)
			}
		}
	}
}

// TestReplacedKeepsNothingBack: what came is passed before more comes, and so is the error.
func TestReplacedKeepsNothingBack(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, said := range []string{"data: {\"a\":1}\n\n", `{"previous`} {
		got, err := io.ReadAll(shown()(io.NopCloser(io.MultiReader(strings.NewReader(said), iotest.ErrReader(broken)))))
		if string(got) != said || !errors.Is(err, broken) {
			t.Errorf("got %q, %v", got, err)
		}
	}
	read, write := io.Pipe()
	go func() { _, _ = io.WriteString(write, "data: {}\n\n") }()
	buf := make([]byte, 100)
	if n, err := shown()(read).Read(buf); string(buf[:n]) != "data: {}\n\n" || err != nil {
		t.Errorf("got %q, %v", buf[:n], err)
	}
	_ = read.Close()
}
