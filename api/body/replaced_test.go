package openai_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"modelrelay/api/openai"
)

// TestShowPrevious: the id is written wherever the answer says that there is none, or the upstream's, in whichever pieces it comes, and nothing else changes.
func TestShowPrevious(t *testing.T) {
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
			got, err := io.ReadAll(iotest.OneByteReader(openai.ShowPrevious("resp_0", "resp_up")(io.NopCloser(in(strings.NewReader(test.answer))))))
			if err != nil || string(got) != want {
				t.Errorf("%s %s: got %s, %v", test.answer, name, got, err)
			}
		}
	}
}

// TestShowPreviousKeepsNothingBack: what came is passed before more comes, and so is the error.
func TestShowPreviousKeepsNothingBack(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, said := range []string{"data: {\"a\":1}\n\n", `{"previous`} {
		got, err := io.ReadAll(openai.ShowPrevious("resp_0", "resp_up")(io.NopCloser(io.MultiReader(strings.NewReader(said), iotest.ErrReader(broken)))))
		if string(got) != said || !errors.Is(err, broken) {
			t.Errorf("got %q, %v", got, err)
		}
	}
	read, write := io.Pipe()
	go func() { _, _ = io.WriteString(write, "data: {}\n\n") }()
	buf := make([]byte, 100)
	if n, err := openai.ShowPrevious("resp_0", "resp_up")(read).Read(buf); string(buf[:n]) != "data: {}\n\n" || err != nil {
		t.Errorf("got %q, %v", buf[:n], err)
	}
	_ = read.Close()
}
