package api_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"modelrelay/api"
	"modelrelay/providers"
)

func TestCheckChat(t *testing.T) {
	t.Parallel()
	check := api.ChatChecker()
	with := func(member string) string { return `{"model":"m","messages":[],` + member + `}` }
	for _, test := range []struct {
		name, body string
		// param is the field at fault; "-" none but the body itself, "" no fault.
		param string
	}{
		{"smallest", `{"model":"m","messages":[]}`, ""},
		{"white space", " {\n\t\"messages\" : [ { \"a\" : 1 } ] ,\r\n \"model\" : \"m\" } \n", ""},
		{"unknown fields pass", with(`"x":{"y":[1,2,{"model":3}]},"x":1`), ""},
		{"null is absent", with(`"temperature":null,"tools":null,"stop":null,"stream_options":null`), ""},
		{"all fields", with(`"temperature":0.5,"top_p":1,"n":1,"stream":true,"stream_options":{},"stop":["a"],"max_tokens":1,
			"max_completion_tokens":2,"presence_penalty":-1,"frequency_penalty":0.1,"logit_bias":{"5":1},"user":"u",
			"tools":[{}],"tool_choice":{"type":"function"},"response_format":{},"seed":-3,"reasoning_effort":"max",
			"modalities":["text","audio"],"audio":{}`), ""},
		{"stop is a string", with(`"stop":"x"`), ""},
		{"tool_choice is a word", with(`"tool_choice":"required"`), ""},
		{"whole number with a point", with(`"n":1.0`), ""},
		{"lone surrogate", with(`"user":"\ud83d"`), ""},
		{"escaped name", `{"\u006dodel":"m","messages":[]}`, ""},

		{"empty", ``, "-"},
		{"no object", `[1]`, "-"},
		{"a string", `"x"`, "-"},
		{"null", `null`, "-"},
		{"cut off", `{"model":"m","messages":[`, "-"},
		{"trailing comma", `{"model":"m","messages":[],}`, "-"},
		{"missing colon", `{"model" "m"}`, "-"},
		{"a second document", `{"model":"m","messages":[]}{}`, "-"},
		{"garbage after", `{"model":"m","messages":[]} x`, "-"},
		{"bad UTF-8", "{\"model\":\"m\",\"messages\":[],\"user\":\"\xff\"}", "-"},
		{"control character", "{\"model\":\"m\",\"messages\":[],\"user\":\"a\nb\"}", "-"},
		{"bad JSON in an unknown field", with(`"x":{"y":[1,}`), "-"},
		{"single quotes", `{'model':'m'}`, "-"},

		{"no model", `{"messages":[]}`, "model"},
		{"null model", `{"model":null,"messages":[]}`, "model"},
		{"no messages", `{"model":"m"}`, "messages"},
		{"empty object", `{}`, "model"},
		{"model is a number", `{"model":1,"messages":[]}`, "model"},
		{"model twice", `{"model":"m","model":"n","messages":[]}`, "model"},
		{"model twice, escaped", `{"model":"m","m\u006fdel":"n","messages":[]}`, "model"},
		{"messages is a string", `{"model":"m","messages":"hi"}`, "messages"},
		{"a message is a string", `{"model":"m","messages":[{},"hi"]}`, "messages[1]"},
		{"a message is null", `{"model":"m","messages":[null]}`, "messages[0]"},
		{"temperature is a string", with(`"temperature":"1"`), "temperature"},
		{"n has a fraction", with(`"n":1.5`), "n"},
		{"n is a boolean", with(`"n":true`), "n"},
		{"stream is a string", with(`"stream":"true"`), "stream"},
		{"stream is a number", with(`"stream":1`), "stream"},
		{"stop is a number", with(`"stop":1`), "stop"},
		{"a stop is a number", with(`"stop":["a",1]`), "stop[1]"},
		{"logit_bias is an array", with(`"logit_bias":[]`), "logit_bias"},
		{"tools is an object", with(`"tools":{}`), "tools"},
		{"tool_choice is an array", with(`"tool_choice":[]`), "tool_choice"},
		{"response_format is a string", with(`"response_format":"json"`), "response_format"},
		{"modalities is a string", with(`"modalities":"text"`), "modalities"},
		{"audio is a string", with(`"audio":"x"`), "audio"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := check([]byte(test.body))
			if test.param == "" {
				if err != nil || got.Unlisted != nil {
					t.Fatalf("got %v, %v, want no fault", err, got.Unlisted)
				}
				if at := test.body[got.ModelAt.From:got.ModelAt.To]; got.Model != "m" || at != `"m"` {
					t.Errorf("got model %q at %q, want m", got.Model, at)
				}
				return
			}
			var fault *providers.Fault
			if !errors.As(err, &fault) || fault.Kind != providers.Invalid {
				t.Fatalf("got %v, want an invalid fault", err)
			}
			if want := strings.TrimPrefix(test.param, "-"); fault.Param != want {
				t.Errorf("got param %q (%s), want %q", fault.Param, fault.Message, want)
			}
		})
	}
}

func TestCheckEnums(t *testing.T) {
	t.Parallel()
	check := api.ChatChecker()
	for member, param := range map[string]string{
		`"reasoning_effort":"minimal"`:             "",
		`"reasoning_effort":"h\u0069gh"`:           "",
		`"reasoning_effort":"extreme"`:             "reasoning_effort",
		`"tool_choice":"maybe"`:                    "tool_choice",
		`"modalities":["text","smell"]`:            "modalities[1]",
		`"modalities":["smell"],"tool_choice":"x"`: "modalities[0]",
	} {
		got, err := check([]byte(`{"model":"m","messages":[],` + member + `}`))
		if err != nil {
			t.Errorf("%s: %v", member, err)
			continue
		}
		switch {
		case param == "" && got.Unlisted != nil:
			t.Errorf("%s: got %v, want nothing unlisted", member, got.Unlisted)
		case param != "" && (got.Unlisted == nil || got.Unlisted.Param != param):
			t.Errorf("%s: got %v, want %s unlisted", member, got.Unlisted, param)
		}
	}
}

func TestCheckNested(t *testing.T) {
	t.Parallel()
	type part struct {
		Text string `json:"text"`
	}
	type message struct {
		Role    string `json:"role" enum:"user,system"`
		Content []part `json:"content" nullable:"false"`
	}
	type nested struct {
		Model string `json:"model"`
		Input struct {
			Messages []message `json:"messages" nullable:"false"`
		} `json:"input"`
	}
	check := api.NestedChecker[nested]()
	for body, param := range map[string]string{
		`{"model":"m","input":{"messages":[{"role":"user","content":[{"text":"hi"}]}]}}`:            "",
		`{"model":"m","input":{"messages":[{"role":"user","content":[{"text":"hi"},{"text":1}]}]}}`: "input.messages[0].content[1].text",
		`{"model":"m","input":{"messages":[{"role":"user","content":[{}]}]}}`:                       "input.messages[0].content[0].text",
		`{"model":"m","input":{"messages":[{"role":1}]}}`:                                           "input.messages[0].role",
		`{"model":"m","input":{}}`: "input.messages",
		`{"model":"m","input":[]}`: "input",
		`{"model":"m","input":{"messages":[{"role":"user","role":"user","content":[{"text":"hi"}]}]}}`: "input.messages[0].role",
	} {
		_, err := check([]byte(body))
		got := ""
		if err != nil {
			got = providers.AsFault(err).Param
		}
		if got != param || (err == nil) != (param == "") {
			t.Errorf("%s: got %v, want %q", body, err, param)
		}
	}
	got, err := check([]byte(`{"model":"m","input":{"messages":[{"role":"robot","content":[]}]}}`))
	if err != nil || got.Unlisted == nil || got.Unlisted.Param != "input.messages[0].role" {
		t.Errorf("got %v, %v, want input.messages[0].role unlisted", got.Unlisted, err)
	}
}

// TestCheckNeverShowsValues: a fault's text must not repeat what the client wrote.
func TestCheckNeverShowsValues(t *testing.T) {
	t.Parallel()
	check := api.ChatChecker()
	for _, body := range []string{
		`{"model":["SECRET"],"messages":[]}`, `{"model":"m","messages":"SECRET"}`, `{"model":"m","SECRET`,
		`{"model":"m","messages":[],"n":"SECRET"}`, `SECRET`, `{"SECRET":SECRET}`,
	} {
		if _, err := check([]byte(body)); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: got %v", body, err)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","messages":[]}`, `{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"stop":["a"]}`,
		`{"\u006dodel":"m"}`, `{"a":"\ud800","messages":[1e400]}`, `[[[[`, `{"model":"m","messages":[]}}`, "\xff", ``,
	} {
		f.Add([]byte(seed))
	}
	check := api.ChatChecker()
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := check(raw)
		if err != nil {
			if fault := providers.AsFault(err); fault.Kind != providers.Invalid {
				t.Fatalf("got kind %s, want invalid", fault.Kind)
			}
			return
		}
		// What passes is a JSON object for everyone else too, with the model where we say it is.
		var body struct {
			Model    string
			Messages []map[string]any
		}
		if err := json.Unmarshal(raw, &body); err != nil {
			var tooBig *json.UnmarshalTypeError
			if errors.As(err, &tooBig) || strings.Contains(err.Error(), "exceeded max depth") {
				t.Skip() // a number out of range, or a field of another case: encoding/json's own limits
			}
			t.Fatalf("accepted, but encoding/json says %v", err)
		}
		var model string
		if err := json.Unmarshal(raw[got.ModelAt.From:got.ModelAt.To], &model); err != nil || model != got.Model {
			t.Fatalf("got model %q at %v, %v", got.Model, got.ModelAt, err)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	message := `{"role":"user","content":"` + strings.Repeat("All work and no play makes Jack a dull boy. ", 20) + `"}`
	small := `{"model":"gpt-4o","messages":[` + message + `],"stream":true,"temperature":0.5,"stream_options":{"include_usage":true}}`
	image := `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 20<<20) + `"}}]}`
	escaped := `{"role":"user","content":"` + strings.Repeat(`a line of code\n\t\"quoted\"`, 800_000) + `"}`
	for name, body := range map[string]string{
		"1KB": small, "20MB_image": `{"model":"m","messages":[` + image + `]}`, "20MB_escaped": `{"model":"m","messages":[` + escaped + `]}`,
	} {
		b.Run(name, func(b *testing.B) {
			check := api.ChatChecker()
			raw := []byte(body)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := check(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
