package upstream_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"modelrelay/dev/upstream"
)

func TestAnthropicMessages(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	const tool = `,"tools":[{"name":"weather","input_schema":{"type":"object"}}]`
	header := []string{"Authorization", "", "X-Api-Key", testKey, "Anthropic-Version", "2023-06-01"}
	for name, tc := range map[string]struct {
		body   string
		want   map[string]any
		deltas string // all deltas of the stream, joined
	}{
		"text": {`"messages":[{"role":"user","content":"hi"}],"system":"be kind"`, map[string]any{
			"type": "message", "role": "assistant", "model": "claude-sonnet-4-6", "content.0.type": "text", "content.0.text": "You said: hi",
			"stop_reason": "end_turn", "stop_sequence": nil, "usage.input_tokens": 4, "usage.output_tokens": 3,
		}, "You said: hi"},
		"cut": {
			`"max_tokens":1,"messages":[{"role":"user","content":"hi"}]`,
			map[string]any{"stop_reason": "max_tokens", "content.0.text": "You "},
			"You ",
		},
		"tool": {`"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]` + tool, map[string]any{
			"stop_reason": "tool_use", "content.0.type": "tool_use", "content.0.name": "weather", "content.0.input.echo": "hi",
		}, `{"echo":"hi"}`},
		"tool result": {`"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"weather","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"sunny"}]}]` + tool, map[string]any{
			"content.0.text": "The tool said: sunny",
		}, "The tool said: sunny"},
		"thinking": {
			`"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":"hi"}]`,
			map[string]any{
				"content.0.type": "thinking", "content.1.text": "You said: hi",
			},
			"The user said something. I will say it back.(signed)You said: hi",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := `{"model":"claude-sonnet-4-6",` + tc.body
			if !strings.Contains(body, "max_tokens") {
				body += `,"max_tokens":100`
			}
			a := f.do(t, "POST", "/anthropic/v1/messages", body+"}", header...)
			if a.status != 200 || a.header.Get("Request-Id") == "" || a.header.Get("Anthropic-Ratelimit-Tokens-Remaining") == "" {
				t.Fatalf("got %d %v %s", a.status, a.header, a.body)
			}
			wants(t, a.json(t), tc.want)

			a = f.do(t, "POST", "/anthropic/v1/messages", body+`,"stream":true}`, header...)
			deltas, order := "", []string{}
			for _, line := range events(t, a.body) {
				var e any
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Fatal(err)
				}
				kind := textAt(t, e, "type")
				if !strings.Contains(string(a.body), "event: "+kind+"\ndata: "+line) {
					t.Errorf("%s has no event line of its own", kind)
				}
				if kind != "ping" && (len(order) == 0 || order[len(order)-1] != kind) {
					order = append(order, kind)
				}
				for _, field := range []string{"text", "partial_json", "thinking"} {
					piece, _ := at(e, "delta", field).(string)
					deltas += piece
				}
				if signature, ok := at(e, "delta", "signature").(string); ok && signature != "" {
					deltas += "(signed)"
				}
			}
			if deltas != tc.deltas {
				t.Errorf("deltas: got %q, want %q", deltas, tc.deltas)
			}
			blocks := "content_block_start content_block_delta content_block_stop"
			want := "message_start " + strings.Repeat(blocks+" ", strings.Count(strings.Join(order, " "), "content_block_start")) +
				"message_delta message_stop"
			if got := strings.Join(order, " "); got != want {
				t.Errorf("events: got %s", got)
			}
		})
	}
	count := f.do(t, "POST", "/anthropic/v1/messages/count_tokens",
		`{"model":"claude-sonnet-4-6","messages":[{"role":"user","content":"hi"}]}`, header...)
	wants(t, count.json(t), map[string]any{"input_tokens": 1})
	wants(t, f.do(t, "GET", "/anthropic/v1/models", "", header...).json(t),
		map[string]any{"data.0.type": "model", "has_more": false, "first_id": "claude-opus-4-6"})
	wants(t, f.do(t, "GET", "/anthropic/v1/models/claude-x", "", header...).json(t), map[string]any{"id": "claude-x"})
}

func TestAnthropicRefusals(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	const ok = `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`
	for name, tc := range map[string]struct {
		body   string
		header []string
		status int
		class  string
	}{
		"bearer works": {ok, []string{"Anthropic-Version", "2023-06-01"}, 200, ""},
		"no key":       {ok, []string{"Authorization", "", "Anthropic-Version", "2023-06-01"}, 401, "authentication_error"},
		"wrong key":    {ok, []string{"X-Api-Key", "sk-ant-x", "Anthropic-Version", "2023-06-01"}, 401, "authentication_error"},
		"no version":   {ok, nil, 400, "invalid_request_error"},
		"no bound": {
			`{"model":"m","messages":[{"role":"user","content":"x"}]}`,
			[]string{"Anthropic-Version", "2023-06-01"},
			400,
			"invalid_request_error",
		},
		"wrong role": {
			`{"model":"m","max_tokens":1,"messages":[{"role":"system","content":"x"}]}`,
			[]string{"Anthropic-Version", "2023-06-01"},
			400, "invalid_request_error",
		},
		"unknown": {`{"model":"unknown","max_tokens":1,"messages":[]}`, []string{"Anthropic-Version", "2023-06-01"}, 404, "not_found_error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := f.do(t, "POST", "/anthropic/v1/messages", tc.body, tc.header...)
			if a.status != tc.status {
				t.Fatalf("got %d, want %d: %s", a.status, tc.status, a.body)
			}
			if tc.class != "" {
				wants(t, a.json(t), map[string]any{"type": "error", "error.type": tc.class, "request_id": a.header.Get("Request-Id")})
			}
		})
	}
	busy := start(t, upstream.Options{})
	busy.rule(t, `{"vendor":"anthropic","action":"status","status":529,"message":"Overloaded"}`)
	a := busy.do(t, "POST", "/anthropic/v1/messages", ok, "Anthropic-Version", "2023-06-01")
	wants(t, a.json(t), map[string]any{"error.type": "overloaded_error", "error.message": "Overloaded"})
}

func TestGemini(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	key := []string{"Authorization", "", "X-Goog-Api-Key", testKey}
	const hi = `"contents":[{"role":"user","parts":[{"text":"hi"}]}]`
	for name, tc := range map[string]struct {
		call, body string
		want       map[string]any
	}{
		"text": {"gemini-2.5-flash:generateContent", `{` + hi + `}`, map[string]any{
			"candidates.0.content.role": "model", "candidates.0.content.parts.0.text": "You said: hi", "candidates.0.finishReason": "STOP",
			"usageMetadata.promptTokenCount": 1, "usageMetadata.candidatesTokenCount": 3, "usageMetadata.totalTokenCount": 4,
			"modelVersion": "gemini-2.5-flash",
		}},
		"cut": {
			"m:generateContent", `{` + hi + `,"generationConfig":{"maxOutputTokens":2}}`,
			map[string]any{"candidates.0.finishReason": "MAX_TOKENS", "candidates.0.content.parts.0.text": "You said: "},
		},
		"call": {"m:generateContent", `{` + hi + `,"tools":[{"functionDeclarations":[{"name":"f"}]}]}`, map[string]any{
			"candidates.0.content.parts.0.functionCall.name": "f", "candidates.0.content.parts.0.functionCall.args.echo": "hi",
			"candidates.0.finishReason": "STOP",
		}},
		"no call": {
			"m:generateContent", `{` + hi +
				`,"tools":[{"functionDeclarations":[{"name":"f"}]}],"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}}`,
			map[string]any{"candidates.0.content.parts.0.text": "You said: hi"},
		},
		"image": {
			"m:generateContent", `{` + hi + `,"generationConfig":{"responseModalities":["TEXT","IMAGE"]}}`,
			map[string]any{"candidates.0.content.parts.1.inlineData.mimeType": "image/png"},
		},
		"thoughts": {
			"m:generateContent", `{` + hi + `,"generationConfig":{"thinkingConfig":{"includeThoughts":true}}}`,
			map[string]any{"candidates.0.content.parts.0.thought": true},
		},
		"count": {"m:countTokens", `{` + hi + `}`, map[string]any{"totalTokens": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, prefix := range []string{"/gemini/v1beta/models/", "/gemini/v1/models/"} {
				a := f.do(t, "POST", prefix+tc.call, tc.body, key...)
				if a.status != 200 {
					t.Fatalf("got %d %s", a.status, a.body)
				}
				wants(t, a.json(t), tc.want)
			}
		})
	}

	a := f.do(t, "POST", "/gemini/v1beta/models/m:streamGenerateContent?alt=sse", `{`+hi+`}`, key...)
	text, lines := "", events(t, a.body)
	for i, line := range lines {
		var chunk any
		if err := json.Unmarshal([]byte(line), &chunk); err != nil {
			t.Fatalf("the SDK takes every line for JSON: %q", line)
		}
		text += textAt(t, chunk, "candidates", 0, "content", "parts", 0, "text")
		if got := at(chunk, "candidates", 0, "finishReason") != nil; got != (i == len(lines)-1) {
			t.Errorf("line %d of %d: finishReason there: %t", i, len(lines), got)
		}
	}
	if text != "You said: hi" {
		t.Errorf("stream: got %q", text)
	}
	a = f.do(t, "POST", "/gemini/v1beta/models/m:streamGenerateContent", `{`+hi+`}`, key...)
	var list []any
	if err := json.Unmarshal(a.body, &list); err != nil || len(list) != len(lines) {
		t.Errorf("without alt=sse: got %v, %s", err, a.body)
	}

	embedding := f.do(t, "POST", "/gemini/v1beta/models/e:embedContent", `{"content":{"parts":[{"text":"x"}]},"outputDimensionality":3}`,
		key...).json(t)
	batch := f.do(t, "POST", "/gemini/v1beta/models/e:batchEmbedContents",
		`{"requests":[{"model":"models/e","content":{"parts":[{"text":"y"}]}},{"model":"models/e","content":{"parts":[{"text":"x"}]},"outputDimensionality":3}]}`, key...).json(t)
	if got, want := fmt.Sprint(at(batch, "embeddings", 1)), fmt.Sprint(embedding["embedding"]); got != want {
		t.Errorf("batch: got %s, want %s", got, want)
	}
	wants(t, f.do(t, "GET", "/gemini/v1beta/models?key="+testKey, "").json(t), map[string]any{"models.0.name": "models/gemini-2.5-flash"})
	wants(t, f.do(t, "GET", "/gemini/v1beta/models/x", "", key...).json(t), map[string]any{"name": "models/x"})

	for name, tc := range map[string]struct {
		path, body string
		header     []string
		status     int
		want       map[string]any
	}{
		"no key": {"m:generateContent", `{}`, nil, 403, map[string]any{"error.status": "PERMISSION_DENIED", "error.code": 403}},
		"wrong key": {
			"m:generateContent", `{}`,
			[]string{"X-Goog-Api-Key", "AIza"},
			400,
			map[string]any{"error.status": "INVALID_ARGUMENT", "error.details.0.reason": "API_KEY_INVALID"},
		},
		"no contents":   {"m:generateContent", `{}`, key, 400, map[string]any{"error.status": "INVALID_ARGUMENT"}},
		"unknown model": {"unknown:generateContent", `{}`, key, 404, map[string]any{"error.status": "NOT_FOUND"}},
		"unknown call":  {"m:sing", `{}`, key, 404, map[string]any{"error.status": "NOT_FOUND"}},
	} {
		a := f.do(t, "POST", "/gemini/v1beta/models/"+tc.path, tc.body, tc.header...)
		if a.status != tc.status {
			t.Errorf("%s: got %d, want %d", name, a.status, tc.status)
		}
		wants(t, a.json(t), tc.want)
	}
}

// visual calls the fake vendor C with a signature made independently of it.
func (f *fake) visual(t *testing.T, action, body string, spoil func(header map[string]string)) answer {
	t.Helper()
	date := time.Now().UTC().Format("20060102T150405Z")
	query := "Action=" + action + "&Version=2022-08-31"
	bodyDigest := digest([]byte(body))
	host := strings.TrimPrefix(f.url, "http://")
	canonical := "POST\n/vendorc/\n" + query + "\ncontent-type:application/json\nhost:" + host + "\nx-content-sha256:" + bodyDigest +
		"\nx-date:" + date +
		"\n\ncontent-type;host;x-content-sha256;x-date\n" + bodyDigest
	scope := date[:8] + "/cn-north-1/cv/request"
	mac := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	key := mac(mac(mac(mac([]byte("sk-upstream-vc"), date[:8]), "cn-north-1"), "cv"), "request")
	signature := hex.EncodeToString(mac(key, "HMAC-SHA256\n"+date+"\n"+scope+"\n"+digest([]byte(canonical))))
	header := map[string]string{
		"X-Date": date, "X-Content-Sha256": bodyDigest, "Content-Type": "application/json",
		"Authorization": "HMAC-SHA256 Credential=ak-upstream-vc/" + scope +
			", SignedHeaders=content-type;host;x-content-sha256;x-date, Signature=" + signature,
	}
	if spoil != nil {
		spoil(header)
	}
	var pairs []string
	for name, value := range header {
		pairs = append(pairs, name, value)
	}
	return f.do(t, "POST", "/vendorc/?"+query, body, pairs...)
}

func TestVendorC(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	const submit, result = "CVSync2AsyncSubmitTask", "CVSync2AsyncGetResult"
	a := f.visual(t, submit, `{"req_key":"jimeng_t2v_manual","prompt":"a cat","binary_data_base64":["AAEC"]}`, nil)
	v := a.json(t)
	wants(t, v, map[string]any{"code": 10000, "status": 10000, "message": "Success"})
	id, _ := at(v, "data", "task_id").(string)
	if id == "" || v["request_id"] == "" || v["time_elapsed"] == "" {
		t.Fatalf("submit: %d %s", a.status, a.body)
	}
	wants(t, f.control(t, "GET", "jobs/"+id, ""),
		map[string]any{"input_bytes": 3, "input_sha256": digest([]byte{0, 1, 2}), "key": "ak-upstream-vc"})
	get := func() answer { return f.visual(t, result, `{"req_key":"jimeng_t2v_manual","task_id":"`+id+`"}`, nil) }
	wants(t, get().json(t), map[string]any{"data.status": "in_queue", "data.video_url": ""})
	f.control(t, "POST", "jobs/"+id, `{"state":"in_progress"}`)
	wants(t, get().json(t), map[string]any{"data.status": "generating"})
	f.control(t, "POST", "jobs/"+id, `{"state":"expired"}`)
	wants(t, get().json(t), map[string]any{"data.status": "expired"})
	f.control(t, "POST", "jobs/"+id, `{"state":"completed"}`)
	v = get().json(t)
	wants(t, v, map[string]any{"data.status": "done"})
	link, _ := at(v, "data", "video_url").(string)
	content := f.do(t, "GET", strings.TrimPrefix(link, f.url), "", "Authorization", "")
	checkBoxes(t, content.body)
	wants(t, f.control(t, "GET", "jobs/"+id, ""), map[string]any{"sha256": digest(content.body), "polls": 4})

	// An old link stops, a new read has a fresh one.
	f.rule(t, `{"operation":"video.get","action":"link","ms":1,"times":1}`)
	link, _ = at(get().json(t), "data", "video_url").(string)
	eventually(t, func() bool {
		a := f.do(t, "GET", strings.TrimPrefix(link, f.url), "")
		return a.status == 403 && strings.Contains(string(a.body), "<Code>AccessDenied</Code>")
	})

	f.control(t, "POST", "jobs/"+id, `{"state":"failed","error":{"code":"50412","message":"Text Risk Not Pass"}}`)
	a = get()
	wants(t, a.json(t), map[string]any{"code": 50412, "status": 50412, "data": nil, "message": "Text Risk Not Pass"})
	if a.status != 400 {
		t.Errorf("failed task: got %d, want 400", a.status)
	}
	wants(t, f.visual(t, result, `{"req_key":"jimeng_t2v_manual","task_id":"1"}`, nil).json(t),
		map[string]any{"code": 10000, "data.status": "not_found"})
	wants(t, f.visual(t, result, `{"req_key":"other","task_id":"`+id+`"}`, nil).json(t), map[string]any{"data.status": "not_found"})

	f.rule(t, `{"vendor":"vendorc","operation":"video.create","action":"status","status":429,"code":"50430","message":"Request Has Reached API Concurrent Limit, Please Try Later","times":1}`)
	wants(t, f.visual(t, submit, `{"req_key":"x","prompt":"y"}`, nil).json(t), map[string]any{"code": 50430, "data": nil})

	for name, tc := range map[string]struct {
		action, body string
		spoil        func(map[string]string)
		status       int
		want         map[string]any
	}{
		"no JSON":        {submit, `{`, nil, 400, map[string]any{"code": 50200}},
		"no req_key":     {submit, `{"prompt":"x"}`, nil, 401, map[string]any{"code": 50400}},
		"four seconds":   {submit, `{"req_key":"x","prompt":"x","frames":97}`, nil, 400, map[string]any{"code": 50215}},
		"empty ratio":    {submit, `{"req_key":"x","prompt":"x","aspect_ratio":""}`, nil, 400, map[string]any{"code": 50215}},
		"bad image":      {submit, `{"req_key":"x","binary_data_base64":["?"]}`, nil, 400, map[string]any{"code": 50207}},
		"unknown action": {"Sing", `{}`, nil, 404, map[string]any{"ResponseMetadata.Error.CodeN": 100008}},
		"not signed": {
			submit, `{}`, func(h map[string]string) { h["Authorization"] = "" }, 400,
			map[string]any{"ResponseMetadata.Error.CodeN": 100025},
		},
		"no date": {
			submit, `{}`, func(h map[string]string) { h["X-Date"] = "" }, 400,
			map[string]any{"ResponseMetadata.Error.CodeN": 100004},
		},
		"old": {submit, `{}`, func(h map[string]string) { h["X-Date"] = "20200101T000000Z" }, 400, map[string]any{
			"ResponseMetadata.Error.Code": "InvalidTimestamp",
		}},
		"other key": {submit, `{}`, func(h map[string]string) {
			h["Authorization"] = strings.Replace(h["Authorization"], "ak-upstream-vc", "AKLT", 1)
		}, 401, map[string]any{"ResponseMetadata.Error.CodeN": 100009}},
		"other secret": {submit, `{}`, func(h map[string]string) {
			h["Authorization"] = strings.Replace(h["Authorization"], "ak-upstream-vc", "ak-upstream-vd", 1)
		}, 401, map[string]any{"ResponseMetadata.Error.CodeN": 100010}},
		"other body": {submit, `{}`, func(h map[string]string) { h["X-Content-Sha256"] = digest([]byte("x")) }, 401, map[string]any{
			"ResponseMetadata.Error.Code": "SignatureDoesNotMatch",
		}},
	} {
		a := f.visual(t, tc.action, tc.body, tc.spoil)
		if a.status != tc.status {
			t.Errorf("%s: got %d, want %d: %s", name, a.status, tc.status, a.body)
		}
		wants(t, a.json(t), tc.want)
	}
}

func TestGeneric(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	const body = `{"model":"wan-manual","prompt":"a cat","duration":5,"width":640,"height":360,"n":2,"metadata":{"style":"noir"}}`
	create := func(body, key string) answer {
		return f.do(t, "POST", "/generic/v1/video/generations", body, "Idempotency-Key", key)
	}
	v := create(body, "").json(t)
	wants(t, v, map[string]any{"object": "video", "status": "queued", "progress": 0, "task_id": v["id"], "model": "wan-manual"})
	if len(v) != 7 {
		t.Errorf("create's keys: got %v", v)
	}
	id := textAt(t, v, "id")
	path := "/generic/v1/video/generations/" + id
	wants(t, f.do(t, "GET", path, "").json(t), map[string]any{
		"duration": 5, "width": 640, "height": 360, "url": nil, "error": nil,
		"completed_at": nil, "metadata.style": "noir",
	})
	f.control(t, "POST", "jobs/"+id, `{"state":"completed"}`)
	v = f.do(t, "GET", path, "").json(t)
	wants(t, v, map[string]any{"status": "completed", "progress": 100, "url": at(v, "urls", 0)})
	first := f.do(t, "GET", strings.TrimPrefix(textAt(t, v, "url"), f.url), "")
	second := f.do(t, "GET", strings.TrimPrefix(textAt(t, v, "urls", 1), f.url), "")
	checkBoxes(t, first.body)
	checkBoxes(t, second.body)
	if digest(first.body) == digest(second.body) {
		t.Error("two outputs have the same bytes")
	}
	if a := f.do(t, "GET", strings.TrimPrefix(textAt(t, v, "url"), f.url), "", "Authorization", ""); a.status != 401 {
		t.Errorf("content without a key: got %d", a.status)
	}
	wants(t, f.do(t, "GET", "/generic/v1/videos/"+id, "").json(t), map[string]any{"id": id, "status": "completed"})

	if path := textAt(t, v, "urls", 1); path != "/generic/v1/videos/"+id+"/content?index=1" {
		t.Errorf("got url %s, want a path of the gateway", path)
	}
	wants(t, f.do(t, "GET", "/generic/openapi.json", "", "Authorization", "").json(t), map[string]any{
		"paths./v1/video/generations.post.parameters.0.name": "Idempotency-Key",
	})

	one, two := create(body, "k1"), create(body, "k1")
	if a, b := one.json(t)["id"], two.json(t)["id"]; a != b {
		t.Errorf("same idempotency key: got %v and %v", a, b)
	}
	id, _ = one.json(t)["id"].(string)
	wants(t, f.control(t, "GET", "jobs/"+id, ""), map[string]any{"submissions": 2})
	wants(t, f.control(t, "GET", "stats", ""), map[string]any{"videos.created": 2, "videos.submissions": 3})
	if a := create(strings.Replace(body, "cat", "dog", 1), "k1"); a.status != 422 {
		t.Errorf("same key, other request: got %d", a.status)
	}
	if a := f.do(t, "POST", "/generic/v1/video/generations", body, "Idempotency-Key", "k1", "Authorization",
		"Bearer sk-upstream-other"); a.json(t)["id"] == id {
		t.Error("another key's idempotency key led to this job")
	}

	f.control(t, "POST", "jobs/"+id, `{"state":"completed"}`)
	remix := func() any {
		return f.do(t, "POST", "/generic/v1/videos/"+id+"/remix", `{"prompt":"at night"}`, "Idempotency-Key", "k2").json(t)["id"]
	}
	if a, b := remix(), remix(); a != b || a == id {
		t.Errorf("same idempotency key: got remixes %v and %v", a, b)
	}
	id, _ = create(body, "k3").json(t)["id"].(string)
	path = "/generic/v1/video/generations/" + id
	wants(t, f.do(t, "POST", path+"/cancel", "").json(t), map[string]any{"status": "failed", "error.code": "cancelled"})
	wants(t, f.do(t, "GET", "/generic/v1/videos/"+id, "").json(t), map[string]any{"status": "failed", "error.code": "cancelled"})
	wants(t, f.do(t, "DELETE", path, "").json(t), map[string]any{"deleted": true})
	a := f.do(t, "GET", path, "")
	wants(t, a.json(t), map[string]any{"error.code": "not_found"})
	if a.status != 404 {
		t.Errorf("after delete: got %d", a.status)
	}

	f.rule(t, `{"operation":"video.create","action":"link","ms":600000,"times":1}`)
	id, _ = create(body, "").json(t)["id"].(string)
	f.control(t, "POST", "jobs/"+id, `{"state":"completed"}`)
	v = f.do(t, "GET", "/generic/v1/video/generations/"+id, "").json(t)
	if a := f.do(t, "GET", strings.TrimPrefix(textAt(t, v, "url"), f.url), "", "Authorization", ""); a.status != 200 {
		t.Errorf("presigned link: got %d", a.status)
	}
}
