package body_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/providers"
)

// chat has fields of every kind.
type chat struct {
	Model               string                        `json:"model" minLength:"1"`
	Messages            []map[string]any              `json:"messages" nullable:"false"`
	Temperature         float64                       `json:"temperature,omitempty"`
	TopP                float64                       `json:"top_p,omitempty"`
	N                   int                           `json:"n,omitempty"`
	Stream              bool                          `json:"stream,omitempty"`
	StreamOptions       map[string]any                `json:"stream_options,omitempty"`
	Stop                body.Either[string, []string] `json:"stop,omitzero"`
	MaxTokens           int                           `json:"max_tokens,omitempty"`
	MaxCompletionTokens int                           `json:"max_completion_tokens,omitempty"`
	PresencePenalty     float64                       `json:"presence_penalty,omitempty"`
	LogitBias           map[string]any                `json:"logit_bias,omitempty"`
	User                string                        `json:"user,omitempty"`
	Tools               []map[string]any              `json:"tools,omitempty" nullable:"false"`
	ToolChoice          choice                        `json:"tool_choice,omitzero"`
	ResponseFormat      map[string]any                `json:"response_format,omitempty"`
	Seed                int64                         `json:"seed,omitempty"`
	ReasoningEffort     string                        `json:"reasoning_effort,omitempty" enum:"none,minimal,low,medium,high,xhigh,max"`
	Modalities          []string                      `json:"modalities,omitempty" nullable:"false" enum:"text,audio"`
	Audio               map[string]any                `json:"audio,omitempty"`
}

// choice is a word or an object.
type choice struct{}

func (choice) Schema(huma.Registry) *huma.Schema {
	return body.AnyOf(&huma.Schema{Type: huma.TypeString, Enum: []any{"none", "auto", "required"}}, body.AnyObject())
}

func checker[Fields any]() *body.Checker {
	return body.NewChecker[Fields](huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer))
}

func TestCheckChat(t *testing.T) {
	t.Parallel()
	check := checker[chat]()
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
			got, err := check.Check([]byte(test.body))
			if test.param == "" {
				if err != nil || got.Unlisted != nil {
					t.Fatalf("got %v, %v, want no fault", err, got.Unlisted)
				}
				if at := string(got.Value("model")); got.Text("model") != "m" || at != `"m"` {
					t.Errorf("got model %q at %q, want m", got.Text("model"), at)
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

// TestTwice finds the first name that an object gives twice, wherever it stands.
func TestTwice(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]}`: "",
		`{"a":1,"a":1}`: "a",
		`{"models":{"gpt.4":"","x":"","gpt.4":"other"}}`: "models.gpt.4",
		`{"a":[{},{"b":1,"b":2}]}`:                       "a.1.b",
		`{"a\u0062":1,"ab":2}`:                           "ab",
		`{"a":1,"a":`:                                    "a",
		`{"a":`:                                          "",
		"{\"a\":\"\xff\",\"b\":1}":                       "",
	} {
		if got := body.DuplicateName([]byte(raw)); got != want {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
}

func TestCheckEnums(t *testing.T) {
	t.Parallel()
	check := checker[chat]()
	for member, param := range map[string]string{
		`"reasoning_effort":"minimal"`:             "",
		`"reasoning_effort":"h\u0069gh"`:           "",
		`"reasoning_effort":"extreme"`:             "reasoning_effort",
		`"tool_choice":"maybe"`:                    "tool_choice",
		`"modalities":["text","smell"]`:            "modalities[1]",
		`"modalities":["smell"],"tool_choice":"x"`: "modalities[0]",
	} {
		got, err := check.Check([]byte(`{"model":"m","messages":[],` + member + `}`))
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
	check := checker[nested]()
	for text, param := range map[string]string{
		`{"model":"m","input":{"messages":[{"role":"user","content":[{"text":"hi"}]}]}}`:            "",
		`{"model":"m","input":{"messages":[{"role":"user","content":[{"text":"hi"},{"text":1}]}]}}`: "input.messages[0].content[1].text",
		`{"model":"m","input":{"messages":[{"role":"user","content":[{}]}]}}`:                       "input.messages[0].content[0].text",
		`{"model":"m","input":{"messages":[{"role":1}]}}`:                                           "input.messages[0].role",
		`{"model":"m","input":{}}`: "input.messages",
		`{"model":"m","input":[]}`: "input",
		`{"model":"m","input":{"messages":[{"role":"user","role":"user","content":[{"text":"hi"}]}]}}`: "input.messages[0].role",
	} {
		_, err := check.Check([]byte(text))
		got := ""
		if err != nil {
			got = providers.AsFault(err).Param
		}
		if got != param || (err == nil) != (param == "") {
			t.Errorf("%s: got %v, want %q", text, err, param)
		}
	}
	got, err := check.Check([]byte(`{"model":"m","input":{"messages":[{"role":"robot","content":[]}]}}`))
	if err != nil || got.Unlisted == nil || got.Unlisted.Param != "input.messages[0].role" {
		t.Errorf("got %v, %v, want input.messages[0].role unlisted", got.Unlisted, err)
	}
}

// TestCheckNeverShowsValues: a fault's text must not repeat what the client wrote.
func TestCheckNeverShowsValues(t *testing.T) {
	t.Parallel()
	check := checker[chat]()
	for _, text := range []string{
		`{"model":["SECRET"],"messages":[]}`, `{"model":"m","messages":"SECRET"}`, `{"model":"m","SECRET`,
		`{"model":"m","messages":[],"n":"SECRET"}`, `SECRET`, `{"SECRET":SECRET}`,
	} {
		if _, err := check.Check([]byte(text)); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: got %v", text, err)
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
	check := checker[chat]()
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := check.Check(raw)
		if err != nil {
			if fault := providers.AsFault(err); fault.Kind != providers.Invalid {
				t.Fatalf("got kind %s, want invalid", fault.Kind)
			}
			return
		}
		// What passes is a JSON object for everyone else too, with the model where we say it is.
		var read struct {
			Model    string
			Messages []map[string]any
		}
		if err := json.Unmarshal(raw, &read); err != nil {
			var tooBig *json.UnmarshalTypeError
			if errors.As(err, &tooBig) || strings.Contains(err.Error(), "exceeded max depth") {
				t.Skip() // a number out of range, or a field of another case: encoding/json's own limits
			}
			t.Fatalf("accepted, but encoding/json says %v", err)
		}
		var model string
		if err := json.Unmarshal(got.Value("model"), &model); err != nil || model != got.Text("model") {
			t.Fatalf("got model %q at %v, %v", got.Text("model"), got.Span("model"), err)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	message := `{"role":"user","content":"` + strings.Repeat("All work and no play makes Jack a dull boy. ", 20) + `"}`
	small := `{"model":"gpt-4o","messages":[` + message + `],"stream":true,"temperature":0.5,"stream_options":{"include_usage":true}}`
	image := `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 20<<20) + `"}}]}`
	escaped := `{"role":"user","content":"` + strings.Repeat(`a line of code\n\t\"quoted\"`, 800_000) + `"}`
	for name, text := range map[string]string{
		"1KB": small, "20MB_image": `{"model":"m","messages":[` + image + `]}`, "20MB_escaped": `{"model":"m","messages":[` + escaped + `]}`,
	} {
		b.Run(name, func(b *testing.B) {
			check := checker[chat]()
			raw := []byte(text)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := check.Check(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
