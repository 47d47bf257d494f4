package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	enumspb "go.temporal.io/api/enums/v1"
	"google.golang.org/genai"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/ledger"
	"modelrelay/storage/testwait"
)

// prefer asks for a call in the background.
const prefer = "respond-async"

// background is a task as /v1/tasks shows it.
type background struct {
	ID, Kind, Operation, Model, Status string
	Attempts                           int
	Cost                               *float64
	Error                              *struct{ Code, Message string }
	Usage                              *struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
	}
	Result *struct {
		StatusCode int `json:"status_code"`
		Bytes      int64
	}
}

func (b background) ended() bool {
	return b.Status == "completed" || b.Status == "failed" || b.Status == "cancelled"
}

// chatIn is a chat call with a prompt.
func chatIn(prompt string, headers ...string) stack.Request {
	r := stack.Request{
		Method: http.MethodPost, Path: "/v1/chat/completions", Header: map[string]string{},
		Body: `{"model":"gpt-4o","messages":[{"role":"user","content":"` + prompt + `"}]}`,
	}
	for pair := range slices.Chunk(headers, 2) {
		r.Header[pair[0]] = pair[1]
	}
	return r
}

// startBackground sends a request in the background, which must be taken, and returns its task.
func startBackground(t *testing.T, g *stack.Gateway, r stack.Request) background {
	t.Helper()
	r.Header = maps.Clone(r.Header)
	if r.Header == nil {
		r.Header = make(map[string]string)
	}
	r.Header["Prefer"] = prefer
	answer := g.Call(t, r)
	var task background
	if err := json.Unmarshal(answer.Body, &task); answer.Status != http.StatusAccepted || err != nil ||
		answer.Header.Get("Location") != "/v1/tasks/"+task.ID {
		t.Fatalf("%s: %d %v %s, %v", r.Path, answer.Status, answer.Header, answer.Body, err)
	}
	return task
}

// awaitBackground returns a task when it has ended. Gateways and what they stand on may be away meanwhile.
func awaitBackground(t *testing.T, g *stack.Gateway, token, id string) (task background) {
	t.Helper()
	testwait.Eventually(t, "the call ends", stack.CrashTimeout, func() bool {
		answer, err := g.Send(t.Context(), stack.Request{Path: "/v1/tasks/" + id + "?wait=5", Token: token})
		return err == nil && answer.Status == http.StatusOK && json.Unmarshal(answer.Body, &task) == nil && task.ended()
	})
	return task
}

// upload is a form with a file.
func upload(t *testing.T, path, field, file string, fields map[string]string) stack.Request {
	t.Helper()
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		_ = w.WriteField(name, fields[name]) // a buffer takes everything
	}
	to, _ := w.CreateFormFile(field, file)
	_, _ = to.Write(picture())
	_ = w.Close()
	return stack.Request{
		Method: http.MethodPost, Path: path, Body: form.String(),
		Header: map[string]string{"Content-Type": w.FormDataContentType()},
	}
}

// backgroundOperations are the operations that may run in the background, native and translated.
func backgroundOperations(t *testing.T) map[string]stack.Request {
	t.Helper()
	all := make(map[string]stack.Request)
	post := func(path string, body map[string]any, model string) {
		if model != "" {
			body["model"] = model
		}
		all[path+" "+model] = stack.Request{
			Method: http.MethodPost, Path: path, Body: body,
			Header: map[string]string{"Anthropic-Version": anthropicVersion},
		}
	}
	ask := []map[string]any{{"role": "user", "content": "Where is the lighthouse?"}}
	contents := []map[string]any{{"role": "user", "parts": []map[string]any{{"text": "Where is the lighthouse?"}}}}
	for _, model := range []string{"gpt-4o", "claude-sonnet-4-5", "gemini-2.5-flash"} {
		post("/v1/chat/completions", map[string]any{"messages": ask}, model)
		post("/v1/responses", map[string]any{"input": "Where is the lighthouse?", "store": false}, model)
		post("/v1/messages", map[string]any{"messages": ask, "max_tokens": 100}, model)
		post("/v1beta/models/"+model+":generateContent", map[string]any{"contents": contents}, "")
	}
	post("/v1/completions", map[string]any{"prompt": "lighthouse"}, "gpt-3.5-turbo-instruct")
	post("/v1/embeddings", map[string]any{"input": "lighthouse"}, "text-embedding-3-small")
	post("/v1beta/models/gemini-embedding-001:embedContent", map[string]any{"content": contents[0]}, "")
	post("/v1beta/models/gemini-embedding-001:batchEmbedContents", map[string]any{
		"requests": []map[string]any{{"model": "models/gemini-embedding-001", "content": contents[0]}},
	}, "")
	post("/v1/images/generations", map[string]any{"prompt": "lighthouse"}, "gpt-image-1")
	post("/v1/audio/speech", map[string]any{"input": "lighthouse", "voice": "alloy"}, "tts-1")
	post("/v1/moderations", map[string]any{"input": "lighthouse"}, "omni-moderation-latest")
	post("/v1/rerank", map[string]any{"query": "lighthouse", "documents": []string{"a lighthouse", "a harbour"}}, "rerank-v3.5")
	all["an edited image"] = upload(t, "/v1/images/edits", "image", "lighthouse.png",
		map[string]string{"model": "gpt-image-1", "prompt": "lighthouse"})
	all["a transcription"] = upload(t, "/v1/audio/transcriptions", "file", "lighthouse.wav", map[string]string{"model": "whisper-1"})
	all["a translation"] = upload(t, "/v1/audio/translations", "file", "lighthouse.wav", map[string]string{"model": "whisper-1"})
	return all
}

// comparable is a JSON answer without what differs between two answers, and anything else as it is.
func comparable(raw []byte) any {
	var doc any
	if json.Unmarshal(raw, &doc) != nil {
		return string(raw)
	}
	var clean func(any)
	clean = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, own := range []string{"id", "created", "created_at", "completed_at", "responseId", "createTime", "b64_json", "model"} {
				delete(v, own)
			}
			for _, member := range v {
				clean(member)
			}
		case []any:
			for _, member := range v {
				clean(member)
			}
		}
	}
	clean(doc)
	return doc
}

// TestBackgroundOperations: each operation answers in the background as it does otherwise.
func TestBackgroundOperations(t *testing.T) {
	t.Parallel()
	g := newFormats(t)
	for name, r := range backgroundOperations(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sync := g.Call(t, r)
			if sync.Status != http.StatusOK {
				t.Fatalf("in the foreground: %d %s", sync.Status, sync.Body)
			}
			task := startBackground(t, g, r)
			path, _, _ := strings.Cut(r.Path, "?")
			if task.Operation != "POST "+path || task.Kind != "call" {
				t.Errorf("the task is %+v", task)
			}
			ended := awaitBackground(t, g, "", task.ID)
			result := g.Call(t, stack.Request{Path: "/v1/tasks/" + task.ID + "/result"})
			if ended.Status != "completed" || ended.Attempts != 1 || result.Status != sync.Status ||
				result.Header.Get("Content-Type") != sync.Header.Get("Content-Type") {
				t.Fatalf("ended as %+v with %+v; the result is %d %s, in the foreground %s", ended, ended.Error, result.Status,
					result.Header.Get("Content-Type"), sync.Header.Get("Content-Type"))
			}
			if got, want := comparable(result.Body), comparable(sync.Body); !reflect.DeepEqual(got, want) {
				t.Errorf("got %.500s\nwant %.500s", result.Body, sync.Body)
			}
		})
	}
	t.Run("failed", func(t *testing.T) {
		t.Parallel()
		r := chatIn("lighthouse")
		r.Body = strings.Replace(r.Body.(string), "gpt-4o", "openai-says-400", 1)
		sync := g.Call(t, r)
		task := startBackground(t, g, r)
		ended := awaitBackground(t, g, "", task.ID)
		result := g.Call(t, stack.Request{Path: "/v1/tasks/" + task.ID + "/result"})
		if ended.Status != "failed" || sync.Status != http.StatusBadRequest || result.Status != sync.Status ||
			!bytes.Equal(result.Body, sync.Body) || result.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("ended as %+v with %+v; %d %s, in the foreground %d %s", ended, ended.Error, result.Status, result.Body, sync.Status, sync.Body)
		}
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		r := chatIn("lighthouse", "Prefer", prefer)
		r.Body = strings.Replace(r.Body.(string), "gpt-4o", "unknown", 1)
		if answer := g.Call(t, r); answer.Status != http.StatusNotFound || answer.Header.Get("Location") != "" ||
			answer.Header.Get("Preference-Applied") != "" {
			t.Errorf("got %d %v %s", answer.Status, answer.Header, answer.Body)
		}
	})
}

// TestBackgroundSDKs: the vendors' SDKs start tasks, and read answers that end within the wait as those of the foreground.
func TestBackgroundSDKs(t *testing.T) {
	t.Parallel()
	f := overWire(newFormats(t))
	var raw *http.Response
	location := func(t *testing.T, err error) {
		t.Helper()
		if raw == nil || raw.StatusCode != http.StatusAccepted || !strings.HasPrefix(raw.Header.Get("Location"), "/v1/tasks/call_") {
			t.Fatalf("got %+v, %v", raw, err)
		}
		if ended := awaitBackground(t, f.Gateway, "", strings.TrimPrefix(raw.Header.Get("Location"), "/v1/tasks/")); ended.Status != "completed" {
			t.Errorf("ended as %+v with %+v", ended, ended.Error)
		}
	}
	t.Run("openai", func(t *testing.T) {
		sdk, params := f.openai(), openai.ChatCompletionNewParams{
			Model:    "gpt-4o",
			Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Where is the lighthouse?")},
		}
		answer, err := sdk.Chat.Completions.New(t.Context(), params, option.WithHeader("Prefer", prefer+", wait=60"),
			option.WithResponseInto(&raw))
		if err != nil || raw.StatusCode != http.StatusOK || !strings.Contains(answer.Choices[0].Message.Content, said) ||
			raw.Header.Get("Content-Location") == "" {
			t.Errorf("with a wait: %v %+v, %v", raw, answer, err)
		}
		_, err = sdk.Chat.Completions.New(t.Context(), params, option.WithHeader("Prefer", prefer), option.WithResponseInto(&raw))
		location(t, err)
		params.Model = "openai-says-400"
		_, err = sdk.Chat.Completions.New(t.Context(), params, option.WithHeader("Prefer", prefer+", wait=60"), option.WithMaxRetries(3),
			option.WithResponseInto(&raw))
		if status := stack.ErrorStatus(err); status != http.StatusBadRequest || raw.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("a failed call: %v", err)
		}
	})
	t.Run("anthropic", func(t *testing.T) {
		sdk := f.anthropic()
		answer, err := sdk.Messages.New(t.Context(), messageOf("claude-sonnet-4-5"), anthropicoption.WithHeader("Prefer", prefer+", wait=60"))
		if err != nil || answer.Content[0].Text != said {
			t.Errorf("with a wait: %+v, %v", answer, err)
		}
		params := messageOf("gpt-4o")
		_, err = sdk.Messages.New(t.Context(), params, anthropicoption.WithHeader("Prefer", prefer), anthropicoption.WithResponseInto(&raw))
		location(t, err)
	})
	t.Run("genai", func(t *testing.T) {
		sdk := f.genai(t, "v1beta", stack.Token)
		answer, err := sdk.Models.GenerateContent(t.Context(), "gemini-2.5-flash", genai.Text("Where is the lighthouse?"),
			&genai.GenerateContentConfig{
				HTTPOptions: &genai.HTTPOptions{Headers: http.Header{"Prefer": {prefer + ", wait=60"}}},
			})
		if err != nil || !strings.Contains(answer.Text(), said) {
			t.Errorf("with a wait: %+v, %v", answer, err)
		}
	})
}

// TestBackgroundKeys: a key names one task of its token.
func TestBackgroundKeys(t *testing.T) {
	t.Parallel()
	s := stack.Shared(t)
	g := s.StartGateway(stack.GatewayOptions{})
	first := startBackground(t, g, chatIn("once", "Idempotency-Key", "k"))
	if again := startBackground(t, g, chatIn("once", "Idempotency-Key", "k")); again.ID != first.ID {
		t.Errorf("got the tasks %s and %s", first.ID, again.ID)
	}
	if answer := g.Call(t, chatIn("twice", "Idempotency-Key", "k", "Prefer", prefer)); answer.Status != http.StatusUnprocessableEntity ||
		answer.Header.Get("X-Should-Retry") != "false" {
		t.Errorf("another request: %d %s", answer.Status, answer.Body)
	}
	awaitBackground(t, g, "", first.ID)
	wantEvents(t, s, first.ID, 16)
	record(s, "call-completed", first.ID)
	if again := startBackground(t, g, chatIn("once", "Idempotency-Key", "k")); again.ID != first.ID || again.Status != "completed" {
		t.Errorf("after the end: %+v", again)
	}
	other := chatIn("once", "Idempotency-Key", "k")
	other.Token = stack.Token + "-other"
	if theirs := startBackground(t, g, other); theirs.ID == first.ID {
		t.Error("two tokens have one task")
	} else {
		awaitBackground(t, g, other.Token, theirs.ID)
	}
	if answer := g.Call(t, chatIn("once", "Idempotency-Key", "k")); answer.Status != http.StatusOK || answer.Header.Get("Location") != "" {
		t.Errorf("in the foreground: %d %s", answer.Status, answer.Body)
	}
	if sent := len(promptsSent(s, "once")); sent != 3 {
		t.Errorf("sent %d times, want 3", sent)
	}
}

// wantEvents checks how long the history of an ended call is.
func wantEvents(t *testing.T, s *stack.Stack, id string, most int) {
	t.Helper()
	testwait.Eventually(t, "the workflow ends", stack.TaskTimeout, func() bool {
		return s.TemporalStatus(id) == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	})
	if n := len(stack.History(t.Context(), t, s.TemporalClient(), id).GetEvents()); n > most {
		t.Errorf("%d history events, want at most %d", n, most)
	}
}

// promptsSent are the requests with a prompt that reached the upstream.
func promptsSent(s *stack.Stack, prompt string) []seen {
	var answer struct {
		Requests []seen `json:"requests"`
	}
	s.Control.Do(http.MethodGet, "/requests?"+url.Values{"operation": {"chat"}}.Encode(), nil, &answer)
	return slices.DeleteFunc(answer.Requests, func(r seen) bool { return !bytes.Contains(r.Head, []byte(`"`+prompt+`"`)) })
}

// TestBackgroundCancel: a cancel ends the upstream's request at once.
func TestBackgroundCancel(t *testing.T) {
	t.Parallel()
	s := stack.NewSplit(stack.Shared(t))
	s.Control.AddRule(map[string]any{"operation": "chat", "action": "hang", "accept": true})
	task := startBackground(t, s.Front, chatIn("unwanted"))
	s.Control.Await("chat", "gpt-4o", "accepted", 1)
	began := time.Now()
	var cancelled background
	s.Front.CallJSON(t, stack.Request{Method: http.MethodPost, Path: "/v1/tasks/" + task.ID + "/cancel"}, &cancelled)
	testwait.Eventually(t, "the upstream's connection is closed", stack.TaskTimeout, func() bool { return s.Control.Canceled("chat") == 1 })
	t.Logf("cancelled as %s, closed after %v", cancelled.Status, time.Since(began))
	ended := awaitBackground(t, s.Front, "", task.ID)
	result := s.Front.Call(t, stack.Request{Path: "/v1/tasks/" + task.ID + "/result"})
	if ended.Status != "cancelled" || ended.Error != nil || result.Status != http.StatusConflict ||
		result.Header.Get("X-Should-Retry") != "false" {
		t.Errorf("ended as %+v; the result is %d %s", ended, result.Status, result.Body)
	}
	record(s.Stack, "call-cancelled", task.ID)
	s.Control.Clear()
	if sent := len(promptsSent(s.Stack, "unwanted")); sent != 1 {
		t.Errorf("sent %d times", sent)
	}
}

// TestBackgroundWebhooks: the end of a call is delivered once and signed. The end of a deleted call is not delivered.
func TestBackgroundWebhooks(t *testing.T) {
	t.Parallel()
	s := stack.Shared(t)
	all, mine := stack.NewReceiver(t, nil), stack.NewReceiver(t, nil)
	g := s.StartGateway(stack.WithReceiver(all.URL + "/all"))
	hooked := func(prompt string, headers ...string) stack.Request {
		r := chatIn(prompt, headers...)
		r.Token = stack.HookToken
		return r
	}
	delivered := startBackground(t, g, hooked("delivered"))
	if event := all.AwaitVerified(t, 1, delivered.ID); event.Type != "task.completed" ||
		!bytes.Contains(all.Requests()[0].Body, []byte(`"kind":"call"`)) {
		t.Errorf("delivered %s: %s", event.Type, all.Requests()[0].Body)
	}
	wantEvents(t, s, delivered.ID, 24)
	own := startBackground(t, g, hooked("own", "X-Webhook-Url", mine.URL+"/own"))
	if event := mine.AwaitVerified(t, 1, own.ID); event.Type != "task.completed" {
		t.Errorf("delivered %s", event.Type)
	}
	s.Control.AddRule(map[string]any{"operation": "chat", "action": "hang", "accept": true, "contains": "held"})
	removed, cancelled := startBackground(t, g, hooked("held and removed")), startBackground(t, g, hooked("held and cancelled"))
	s.Control.Await("chat", "gpt-4o", "accepted", 4)
	if answer := g.Call(t, stack.Request{
		Method: http.MethodDelete, Path: "/v1/tasks/" + removed.ID,
		Token: stack.HookToken,
	}); answer.Status != http.StatusOK {
		t.Fatalf("delete: %d %s", answer.Status, answer.Body)
	}
	if answer := g.Call(t, stack.Request{Path: "/v1/tasks/" + removed.ID, Token: stack.HookToken}); answer.Status != http.StatusNotFound {
		t.Errorf("a removed task: %d %s", answer.Status, answer.Body)
	}
	testwait.Eventually(t, "the removal has ended", stack.TaskTimeout, func() bool { return !s.Knows(removed.ID) })
	g.Call(t, stack.Request{Method: http.MethodPost, Path: "/v1/tasks/" + cancelled.ID + "/cancel", Token: stack.HookToken})
	if event := all.AwaitVerified(t, 2, cancelled.ID); event.Type != "task.cancelled" {
		t.Errorf("delivered %s", event.Type)
	}
	if n := len(all.Requests()); n != 2 {
		t.Errorf("%d deliveries, want 2", n)
	}
}

// TestBackgroundMoney: the budget is reserved at the create and settled once, and the ledger has what it has of a call in the foreground.
func TestBackgroundMoney(t *testing.T) {
	t.Parallel()
	s := stack.Shared(t)
	g := s.StartGateway(stack.GatewayOptions{
		Tokens: "  - {name: rich, key: sk-rich, budget: 10}\n  - {name: usual, key: sk-usual, budget: 10}\n  - {name: poor, key: sk-poor, budget: 0.000002}\n" + moneyPrices,
	})
	redis := s.RedisClient("")
	budgets, reader := ledger.NewBudgets(redis, 0), ledger.NewReader(redis)
	balance := func(token string) ledger.Balance {
		t.Helper()
		b, err := budgets.Balance(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	rule := s.Control.AddRule(map[string]any{"operation": "chat", "action": "hang", "contains": "held"})
	call := func(token, prompt string, headers ...string) stack.Request {
		r := chatIn(prompt, headers...)
		r.Token = token
		return r
	}
	held := startBackground(t, g, call("sk-rich", "held"))
	if b := balance("rich"); b.Reserved <= 0 || b.Spent != 0 {
		t.Errorf("while it runs: %+v", b)
	}
	s.Control.Do(http.MethodDelete, "/rules/"+rule, nil, nil)
	s.Control.Clear()
	ended := awaitBackground(t, g, "sk-rich", held.ID)
	testwait.Eventually(t, "the call is settled", stack.TaskTimeout, func() bool { return balance("rich").Reserved == 0 })
	if answer := g.Call(t, call("sk-usual", "held")); answer.Status != http.StatusOK {
		t.Fatalf("in the foreground: %d %s", answer.Status, answer.Body)
	}
	row := func(token string) (row ledger.Row) {
		t.Helper()
		testwait.Eventually(t, "the ledger has the call", stack.TaskTimeout, func() bool {
			rows, err := reader.Read(t.Context(), time.Now().AddDate(0, 0, -1), time.Now(), token)
			if err != nil || len(rows) != 1 {
				return false
			}
			row = rows[0]
			row.Token = ""
			return true
		})
		return row
	}
	got, want := row("rich"), row("usual")
	if !reflect.DeepEqual(got, want) || got.Requests != 1 || got.Cost == 0 {
		t.Errorf("the ledger has %+v, in the foreground %+v", got, want)
	}
	if ended.Status != "completed" || ended.Cost == nil || fmt.Sprintf("%.0f", *ended.Cost*1e9) != fmt.Sprint(got.Cost) ||
		ended.Usage == nil || ended.Usage.Output != got.OutputTokens || balance("rich").Spent != got.Cost {
		t.Errorf("the task has %+v, the ledger %+v, the budget %+v", ended, got, balance("rich"))
	}
	sync, async := g.Call(t, call("sk-poor", "dear")), g.Call(t, call("sk-poor", "dear", "Prefer", prefer))
	if sync.Status != http.StatusTooManyRequests || async.Status != sync.Status || async.Header.Get("Location") != "" ||
		balance("poor").Reserved != 0 {
		t.Errorf("beyond the budget: %d %s, in the foreground %d %s; %+v", async.Status, async.Body, sync.Status, sync.Body, balance("poor"))
	}
}
