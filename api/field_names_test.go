package api_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"modelrelay/api"
)

// TestNamesInAnotherCase: a name that differs from one of the contract only in case is refused, because decoders in Go accept it as that
// name.
func TestNamesInAnotherCase(t *testing.T) {
	t.Parallel()
	const (
		messages = `"messages":[{"role":"user","content":"hi"}]`
		turns    = `"contents":[{"parts":[{"text":"hi"}]}]`
		generate = "/v1beta/models/gpt-4o:generateContent"
	)
	type test struct{ path, body, param string }
	tests := map[string]test{
		"a model":               {"/v1/chat/completions", `{"model":"gpt-4o","Model":"fast",` + messages + `}`, "Model"},
		"in front":              {"/v1/chat/completions", `{"MODEL":"fast","model":"gpt-4o",` + messages + `}`, "MODEL"},
		"alone":                 {"/v1/chat/completions", `{"modeL":"fast",` + messages + `}`, "modeL"},
		"a null":                {"/v1/chat/completions", `{"model":"gpt-4o","Model":null,` + messages + `}`, "Model"},
		"a long s":              {"/v1/chat/completions", `{"model":"gpt-4o","ſtream":true,` + messages + `}`, "ſtream"},
		"a long s in stop":      {"/v1/chat/completions", `{"model":"gpt-4o","ſtop":"x",` + messages + `}`, "ſtop"},
		"the sign of Kelvin":    {"/v1/chat/completions", "{\"model\":\"gpt-4o\",\"max_to\u212aens\":9," + messages + `}`, "max_to\u212aens"},
		"escaped":               {"/v1/chat/completions", `{"model":"gpt-4o","\u004dodel":"fast",` + messages + `}`, "Model"},
		"a limit beyond chat's": {"/v1/chat/completions", `{"model":"gpt-4o","Max_Output_Tokens":9,` + messages + `}`, "Max_Output_Tokens"},
		"an option of streams": {
			"/v1/chat/completions",
			`{"model":"gpt-4o","stream":true,"stream_options":{"Include_usage":false},` + messages + `}`, "stream_options.Include_usage",
		},
		"a response":               {"/v1/responses", `{"model":"gpt-4o","Previous_Response_Id":"resp_1"}`, "Previous_Response_Id"},
		"an image's parameters":    {"/v1/images/edits", `{"model":"gpt-4o","prompt":"p","parameters":{"N":4}}`, "parameters.N"},
		"a message":                {"/v1/messages", `{"model":"gpt-4o","max_tokens":1,"Max_Tokens":9,` + messages + `}`, "Max_Tokens"},
		"a configuration":          {generate, `{"GenerationConfig":{},` + turns + `}`, "GenerationConfig"},
		"within a configuration":   {generate, `{"generationConfig":{"MaxOutputTokens":9},` + turns + `}`, "generationConfig.MaxOutputTokens"},
		"a configuration in snake": {generate, `{"Generation_config":{},` + turns + `}`, "Generation_config"},
		"a part":                   {generate, `{"contents":[{"parts":[{"Text":"hi"}]}]}`, "contents[0].parts[0].Text"},
		"a request of a batch": {
			"/v1beta/models/gpt-4o:batchEmbedContents", `{"requests":[{"content":{},"Model":"models/fast"}]}`,
			"requests[0].Model",
		},
		"a remix":            {remixPath, `{"prompt":"p","Seconds":"20"}`, "Seconds"},
		"a remix's metadata": {remixPath, `{"prompt":"p","metadata":{"Seconds":20}}`, "metadata.Seconds"},
		"vendor C":           {submitPath, `{"req_key":"sora-2","prompt":"p","Req_Key":"fast"}`, "Req_Key"},
		"vendor C's frames":  {submitPath, `{"req_key":"sora-2","prompt":"p","Frames":241}`, "Frames"},
		"a result of vendor C": {
			strings.Replace(submitPath, "CVSync2AsyncSubmitTask", "CVSync2AsyncGetResult", 1),
			`{"task_id":"video_1","Task_Id":"video_2"}`, "Task_Id",
		},
	}
	for path, format := range map[string]string{"/v1/videos": "sora", generations: "generic"} {
		for name, member := range map[string]string{
			"Model": `"Model":"fast"`, "Seconds": `"Seconds":"20"`, "ſeconds": `"ſeconds":"20"`, "Duration": `"Duration":20`, "Image": `"Image":"x"`,
			"req_Key": `"req_Key":"fast"`, "metadata.MODEL": `"metadata":{"MODEL":"fast"}`, "metadata.ſeconds": `"metadata":{"a":1,"ſeconds":20}`,
		} {
			tests[name+" in "+format] = test{path, `{"model":"sora-2","prompt":"p",` + member + `}`, name}
		}
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, nil, nil)
			remixable(g)
			rec := g.do(t, request("POST", tc.path, tc.body, "Anthropic-Version", "2023-06-01"))
			shown, _ := json.Marshal(tc.param)
			if rec.Code != 400 || !bytes.Contains(rec.Body.Bytes(), bytes.Trim(shown, `"`)) || len(g.tasks.creates) > 0 ||
				len(g.ledger.entries) > 0 {
				t.Errorf("got %d %s, want a 400 that names %s", rec.Code, rec.Body, tc.param)
			}
		})
	}
}

func TestFormNamesInAnotherCase(t *testing.T) {
	t.Parallel()
	sound, image := part{"file", "a.mp3", "", "x"}, part{"image", "a.png", "image/png", png}
	model := part{"model", "", "", "gpt-4o"}
	for _, tc := range []struct {
		path, param string
		parts       []part
	}{
		{"/v1/audio/transcriptions", "Model", []part{model, sound, {"Model", "", "", "fast"}}},
		{"/v1/audio/transcriptions", "STREAM", []part{model, sound, {"STREAM", "", "", "true"}}},
		{"/v1/images/edits", "N", []part{model, image, {"prompt", "", "", "p"}, {"N", "", "", "4"}}},
		{"/v1/images/edits", "N", []part{model, image, {"prompt", "", "", "p"}, {"N[]", "", "", "4"}}},
		{"/v1/videos", "ſeconds", []part{{"prompt", "", "", "p"}, {"ſeconds", "", "", "20"}}},
		{"/v1/videos", "Duration", []part{{"prompt", "", "", "p"}, {"Duration", "", "", "20"}}},
		{"/v1/videos", "metadata.Seconds", []part{{"prompt", "", "", "p"}, {"metadata[Seconds]", "", "", "20"}}},
		{"/v1/videos", "metadata.Seconds", []part{{"prompt", "", "", "p"}, {"metadata", "", "", `{"Seconds":20}`}}},
		{remixPath, "Model", []part{{"prompt", "", "", "p"}, {"Model", "", "", "fast"}}},
	} {
		g := newGateway(t, nil, func(_ *gateway, o *api.Options) { o.DefaultVideoModel = "sora-2" })
		remixable(g)
		contentType, body := form(t, tc.parts...)
		rec := g.do(t, request("POST", tc.path, body, "Content-Type", contentType))
		if _, param := fault(t, rec); rec.Code != 400 || param != tc.param || len(g.tasks.creates) > 0 {
			t.Errorf("%s at %s: got %d %s", tc.param, tc.path, rec.Code, rec.Body)
		}
	}
}

// TestNamesGivenTwice: an object that has a name twice is refused.
func TestNamesGivenTwice(t *testing.T) {
	t.Parallel()
	const turns = `"contents":[{"parts":[{"text":"hi"}]}]`
	for _, tc := range []struct{ path, body, param string }{
		{"/v1/chat/completions", `{"model":"gpt-4o","model":"fast","messages":[]}`, "model"},
		{
			"/v1/chat/completions", `{"model":"gpt-4o","messages":[],"stream_options":{"include_usage":true,"include_usage":false}}`,
			"stream_options.include_usage",
		},
		{"/v1/chat/completions", `{"model":"gpt-4o","messages":[],"best_of":1,"best_of":9}`, "best_of"},
		{"/v1/chat/completions", `{"model":"gpt-4o","messages":[],"prompt_cache_key":"a","prompt_cache_key":"b"}`, "prompt_cache_key"},
		{
			"/v1beta/models/gpt-4o:generateContent", `{"generationConfig":{},"generation_config":{"max_output_tokens":9},` + turns + `}`,
			"generationConfig",
		},
		{
			"/v1beta/models/gpt-4o:generateContent", `{"generationConfig":{"maxOutputTokens":1,"max_output_tokens":9},` + turns + `}`,
			"generationConfig.maxOutputTokens",
		},
		{"/v1/videos", `{"prompt":"p","model":"sora-2","metadata":{"seconds":4,"seconds":20}}`, "metadata.seconds"},
		{generations, `{"prompt":"p","model":"sora-2","seconds":4,"seconds":20}`, "seconds"},
	} {
		rec := newGateway(t, nil, nil).do(t, request("POST", tc.path, tc.body))
		if rec.Code != 400 || !strings.Contains(rec.Body.String(), "'"+tc.param+"' is given more than once") {
			t.Errorf("%s: got %d %s, want a 400 on %s", tc.body, rec.Code, rec.Body, tc.param)
		}
	}
}

// TestGeminiBodyNamesThePathsModel: a Gemini body that names another model than its path is refused.
func TestGeminiBodyNamesThePathsModel(t *testing.T) {
	t.Parallel()
	const turns = `"contents":[{"parts":[{"text":"hi"}]}]`
	for _, tc := range []struct{ verb, body string }{
		{"generateContent", `{"model":"models/fast",` + turns + `}`},
		{"streamGenerateContent", `{"model":"fast",` + turns + `}`},
		{"countTokens", `{"generate_content_request":{"model":"models/fast",` + turns + `}}`},
		{"batchEmbedContents", `{"model":"models/fast","requests":[]}`},
	} {
		rec := newGateway(t, nil, nil).do(t, request("POST", "/v1beta/models/gpt-4o:"+tc.verb, tc.body))
		if rec.Code != 400 || !strings.Contains(rec.Body.String(), "must be the model of the path") {
			t.Errorf("%s %s: got %d %s", tc.verb, tc.body, rec.Code, rec.Body)
		}
	}
}
