package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

// TestBackgroundResponsesSDK: OpenAI's Go SDK drives responses in the background on models of every vendor.
func TestBackgroundResponsesSDK(t *testing.T) {
	t.Parallel()
	f := overWire(newFormats(t))
	sdk := f.openai()
	for _, model := range []string{"gpt-4o", "claude-sonnet-4-5", "gemini-2.5-flash"} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			params := responses.ResponseNewParams{
				Model: model, Background: openai.Bool(true),
				Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Where is the lighthouse?")},
			}
			made, err := sdk.Responses.New(t.Context(), params)
			if err != nil || made.Status != responses.ResponseStatusQueued {
				t.Fatalf("created %+v, %v", made, err)
			}
			testwait.Eventually(t, "the response ends", stack.TaskTimeout, func() bool {
				made, err = sdk.Responses.Get(t.Context(), made.ID, responses.ResponseGetParams{})
				return err != nil || made.Status != responses.ResponseStatusQueued && made.Status != responses.ResponseStatusInProgress
			})
			if err != nil || made.OutputText() != said {
				t.Errorf("ended as %+v, %v", made, err)
			}
			items, err := sdk.Responses.InputItems.List(t.Context(), made.ID, responses.InputItemListParams{Limit: openai.Int(1), Order: "asc"})
			if err != nil || len(items.Data) != 1 || !strings.Contains(items.Data[0].RawJSON(), "Where is the lighthouse?") {
				t.Errorf("input items: %+v, %v", items, err)
			}

			events := drain(t, sdk.Responses.NewStreaming(t.Context(), params))
			id, last := events[0].Response.ID, len(events)-1
			// A client that has read a stream to its end finds the response ended.
			if now, err := sdk.Responses.Get(t.Context(), id, responses.ResponseGetParams{}); err != nil ||
				now.Status != responses.ResponseStatusCompleted {
				t.Errorf("after the end of its stream a response is %+v, %v", now, err)
			}
			next := params
			next.PreviousResponseID = openai.String(id)
			if chained, err := sdk.Responses.New(t.Context(), next); err != nil || chained.PreviousResponseID != id {
				t.Errorf("a response that continues from it: %+v, %v", chained, err)
			}
			for n, event := range events {
				if event.SequenceNumber != int64(n) {
					t.Errorf("event %d has the number %d", n, event.SequenceNumber)
				}
			}
			// The SDK names the stream in the body of its GET, where no server looks for it: github.com/openai/openai-go/issues/660.
			rest := drain(t, sdk.Responses.GetStreaming(t.Context(), id, responses.ResponseGetParams{StartingAfter: openai.Int(2)},
				option.WithQuery("stream", "true")))
			if len(rest) != last-2 || rest[0].RawJSON() != events[3].RawJSON() || events[last].Type != "response.completed" ||
				rest[len(rest)-1].RawJSON() != events[last].RawJSON() {
				t.Errorf("continued with %+v, want the events after 2 of %+v", rest, events)
			}
			if cancelled, err := sdk.Responses.Cancel(t.Context(), id); err != nil || cancelled.Status != responses.ResponseStatusCompleted {
				t.Errorf("cancelled an ended response: %+v, %v", cancelled, err)
			}
			if err := sdk.Responses.Delete(t.Context(), id); err != nil {
				t.Error(err)
			}
			if _, err := sdk.Responses.Get(t.Context(), id, responses.ResponseGetParams{}); stack.ErrorStatus(err) != http.StatusNotFound {
				t.Errorf("a deleted response: %v", err)
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		const model = "org/llama:70b"
		control := f.Stack.Control.For(t)
		control.AddRule(map[string]any{"operation": "responses", "model": model, "action": "hang", "accept": true})
		made, err := sdk.Responses.New(t.Context(), responses.ResponseNewParams{
			Model: model, Background: openai.Bool(true),
			Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Where is the lighthouse?")},
		})
		if err != nil {
			t.Fatal(err)
		}
		control.Await("responses", model, "accepted", 1)
		if _, err := sdk.Responses.Cancel(t.Context(), made.ID); err != nil {
			t.Error(err)
		}
		testwait.Eventually(t, "the response is cancelled", stack.TaskTimeout, func() bool {
			made, err = sdk.Responses.Get(t.Context(), made.ID, responses.ResponseGetParams{})
			return err != nil || made.Status == responses.ResponseStatusCancelled
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// python returns a request with the headers that OpenAI's Python SDK sends (src/openai/_base_client.py of openai-python): a request without
// a body names a content type too, unless it is a GET.
func python(method, path, body string, headers ...string) stack.Request {
	r := stack.Request{Method: method, Path: path, Header: map[string]string{
		"Accept": "application/json", "Accept-Encoding": "gzip, deflate", "Content-Type": "application/json",
		"User-Agent":       "OpenAI/Python 2.30.0",
		"X-Stainless-Lang": "python", "X-Stainless-Package-Version": "2.30.0", "X-Stainless-OS": "Linux", "X-Stainless-Arch": "x64",
		"X-Stainless-Runtime": "CPython", "X-Stainless-Runtime-Version": "3.13.5", "X-Stainless-Async": "false",
		"x-stainless-retry-count": "0", "x-stainless-read-timeout": "600",
	}}
	if body != "" {
		r.Body = body
	}
	if method == http.MethodGet {
		delete(r.Header, "Content-Type")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header[headers[i]] = headers[i+1]
	}
	return r
}

// TestBackgroundPython: what OpenAI's Python SDK sends drives calls and responses in the background.
func TestBackgroundPython(t *testing.T) {
	t.Parallel()
	g := newFormats(t)
	const chat = `{"messages":[{"role":"user","content":"Where is the lighthouse?"}],"model":"claude-sonnet-4-5"}`
	t.Run("chat", func(t *testing.T) {
		t.Parallel()
		// client.chat.completions.with_raw_response.create(…, extra_headers={"Prefer": "respond-async"})
		started := g.Call(t, python(http.MethodPost, "/v1/chat/completions", chat, "Prefer", prefer, "X-Stainless-Raw-Response", "true"))
		var task background
		if err := json.Unmarshal(started.Body, &task); err != nil || started.Status != http.StatusAccepted ||
			started.Header.Get("Location") != "/v1/tasks/"+task.ID {
			t.Fatalf("created %d %s", started.Status, started.Body)
		}
		// What the SDK sends again after its timeout.
		if again := g.Call(t, python(http.MethodPost, "/v1/chat/completions", chat, "Prefer", prefer, "x-stainless-retry-count",
			"1")); again.Header.Get("Location") != "/v1/tasks/"+task.ID {
			t.Errorf("repeated: %d %v %s", again.Status, again.Header, again.Body)
		}
		// client.get("/tasks/…", cast_to=object, options={"params": {"wait": 30}})
		testwait.Eventually(t, "the call ends", stack.TaskTimeout, func() bool {
			g.CallJSON(t, python(http.MethodGet, "/v1/tasks/"+task.ID+"?wait=30", ""), &task)
			return task.ended()
		})
		if result := g.Call(t, python(http.MethodGet, "/v1/tasks/"+task.ID+"/result", "")); task.Status != "completed" ||
			result.Status != http.StatusOK || !strings.Contains(string(result.Body), said) {
			t.Errorf("ended as %+v: %d %s", task, result.Status, result.Body)
		}
		waited := g.Call(t, python(http.MethodPost, "/v1/chat/completions", chat, "Prefer", prefer+", wait=60"))
		if waited.Status != http.StatusOK || !strings.Contains(string(waited.Body), said) {
			t.Errorf("with a wait: %d %s", waited.Status, waited.Body)
		}
	})
	for _, model := range []string{"gpt-4o", "claude-sonnet-4-5", "gemini-2.5-flash"} {
		t.Run("responses of "+model, func(t *testing.T) {
			t.Parallel()
			pythonResponses(t, g, model)
		})
	}
}

func pythonResponses(t *testing.T, g *stack.Gateway, model string) {
	t.Helper()
	type response struct{ ID, Status string }
	read := func(r stack.Request) (answer response, body string) {
		t.Helper()
		got := g.Call(t, r)
		if err := json.Unmarshal(got.Body, &answer); err != nil || got.Status != http.StatusOK {
			t.Fatalf("%s %s: %d %s, %v", r.Method, r.Path, got.Status, got.Body, err)
		}
		return answer, string(got.Body)
	}
	create := func(stream string) string {
		return fmt.Sprintf(`{"background":true,"input":"Where is the lighthouse?","model":%q%s}`, model, stream)
	}
	made, _ := read(python(http.MethodPost, "/v1/responses", create("")))
	if again, _ := read(python(http.MethodPost, "/v1/responses", create(""), "x-stainless-retry-count", "1")); again.ID != made.ID {
		t.Errorf("repeated: %+v, want %s", again, made.ID)
	}
	path, shown, body := "/v1/responses/"+made.ID, made, ""
	testwait.Eventually(t, "the response ends", stack.TaskTimeout, func() bool {
		shown, body = read(python(http.MethodGet, path, ""))
		return shown.Status != "queued" && shown.Status != "in_progress"
	})
	if shown.Status != "completed" || !strings.Contains(body, said) {
		t.Errorf("ended as %s", body)
	}
	if _, items := read(python(http.MethodGet, path+"/input_items?limit=1&order=asc", "")); !strings.Contains(items,
		"Where is the lighthouse?") {
		t.Errorf("input items: %s", items)
	}
	if cancelled, body := read(python(http.MethodPost, path+"/cancel", "")); cancelled != shown { // a repeat changes nothing
		t.Errorf("cancelled: %s", body)
	}
	read(python(http.MethodDelete, path, "", "Accept", "*/*"))
	if gone := g.Call(t, python(http.MethodGet, path, "")); gone.Status != http.StatusNotFound {
		t.Errorf("deleted: %d %s", gone.Status, gone.Body)
	}

	streamed := string(g.Call(t, python(http.MethodPost, "/v1/responses", create(`,"stream":true`))).Body)
	events := strings.SplitAfter(streamed, "\n\n")
	var first struct{ Response response }
	_, data, _ := strings.Cut(events[0], "data: ")
	if err := json.Unmarshal([]byte(data), &first); err != nil || len(events) < 5 ||
		!strings.Contains(events[len(events)-2], "response.completed") {
		t.Fatalf("the stream: %s, %v", streamed, err)
	}
	rest := g.Call(t, python(http.MethodGet, "/v1/responses/"+first.Response.ID+"?starting_after=3&stream=true", ""))
	if want := strings.Join(events[4:], ""); rest.Status != http.StatusOK || string(rest.Body) != want {
		t.Errorf("continued with %d %s, want %s", rest.Status, rest.Body, want)
	}
}
