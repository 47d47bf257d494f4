package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"modelrelay/activities"
	"modelrelay/api"
	"modelrelay/api/calls"
	"modelrelay/api/openai"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/providers/translate"
	"modelrelay/providers/upstream"
	"modelrelay/providers/vendors"
	"modelrelay/storage/limits"
	"modelrelay/storage/responses"
	"modelrelay/storage/storagetest"
	"modelrelay/workflows/tasks"
)

// storesResponses stores the answers of translated models in a store, as the program does.
type storesResponses struct{ in *responses.Store }

func (s storesResponses) Store(ctx context.Context, token string, response translate.Response) bool {
	stored := responses.Response{Object: response.Object, Earlier: response.Earlier, Input: response.Input}
	for id, item := range response.Items() {
		stored.Items = append(stored.Items, responses.Item{ID: id, JSON: item})
	}
	return s.in.Save(ctx, token, response.ID, stored, time.Hour) == nil
}

func (storesResponses) MaxSize() int { return responses.MaxSize }

// storing is a gateway that stores responses. Its models are "claude", "gemini", "chat" and "gpt", the last of which is OpenAI's own.
type storing struct {
	*gateway
	redis *storagetest.Server

	mu   sync.Mutex
	last string // body or method and path of the latest request to an upstream
}

func newStoring(t *testing.T, change func(*api.Options), origins ...relay.Origins) *storing {
	t.Helper()
	s := &storing{redis: storagetest.NewServer(t)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.last = string(body)
		if len(body) == 0 {
			s.last = r.Method + " " + r.URL.RequestURI()
		}
		s.mu.Unlock()
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(string(body))), int64(len(body))
		says(w, r)
	}))
	t.Cleanup(server.Close)
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	vendors := vendors.New(client)
	channel := func(model, vendor, dialect string) providers.Channel {
		return providers.Channel{
			Name: model, Vendor: vendor, Dialect: dialect, BaseURL: server.URL, Keys: []providers.Secret{channelKey},
			Models: map[string]string{model: "up"}, Groups: []string{"default"},
		}
	}
	routes := router.New(vendors, []providers.Channel{
		channel("claude", "anthropic", ""), channel("gemini", "gemini", ""), channel("chat", "openai", providers.DialectChat),
		channel("gpt", "openai", providers.DialectResponses),
	}, &router.Options{Reaches: translate.Reaches})
	store := responses.New(s.redis.Client(t), nil)
	origins = append(origins, &madeBy{ids: make(map[string]relay.Origin)})
	s.gateway = newGateway(t, nil, func(_ *gateway, o *api.Options) {
		o.Relay = relay.New(routes, vendors, &relay.Options{
			MaxAttempts: 1, Translator: &translate.Translator{Responses: storesResponses{store}}, Origins: origins[0],
		})
		o.Router, o.Responses = routes, store
		if change != nil {
			change(o)
		}
	})
	return s
}

// sent is the body of the latest request to an upstream.
func (s *storing) sent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// storedObject is what a test reads of a response.
type storedObject struct {
	ID       string
	Status   string
	Store    bool
	Previous *string `json:"previous_response_id"`
	Output   []struct{ ID, Type string }
}

// ask makes a call and returns the response, and its bytes.
func (s *storing) ask(t *testing.T, body string) (object storedObject, raw string) {
	t.Helper()
	rec := s.do(t, request("POST", "/v1/responses", body))
	if rec.Code != http.StatusOK {
		t.Fatalf("%.300s: %d %s", body, rec.Code, rec.Body)
	}
	raw = rec.Body.String()
	if strings.Contains(body, `"stream":true`) {
		for line := range strings.Lines(raw) {
			var event struct{ Response json.RawMessage }
			if data, is := strings.CutPrefix(line, "data: "); is {
				decode(t, []byte(data), &event)
				raw = string(event.Response) // the last event has it
			}
		}
	}
	decode(t, []byte(raw), &object)
	return object, raw
}

func (s *storing) read(t *testing.T, method, path, key string) (int, string) {
	t.Helper()
	rec := s.do(t, request(method, "/v1/responses/"+path, "", "Authorization", "Bearer "+key))
	return rec.Code, rec.Body.String()
}

// TestStoredResponse: the response of a translated model can be read as it was answered, by its token alone, until it is deleted.
func TestStoredResponse(t *testing.T) {
	t.Parallel()
	s := newStoring(t, nil)
	for _, model := range []string{"claude", "gemini", "chat"} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(model, stream), func(t *testing.T) {
				object, raw := s.ask(t, fmt.Sprintf(`{"model":%q,"input":"hi","stream":%t}`, model, stream))
				if !regexp.MustCompile(`^resp_[0-9a-v]{26}$`).MatchString(object.ID) || !object.Store || object.Previous != nil ||
					object.Status != "completed" {
					t.Fatalf("got %s", raw)
				}
				if code, got := s.read(t, "GET", object.ID, goodKey); code != http.StatusOK || got != raw {
					t.Errorf("got %d %s, want %s", code, got, raw)
				}
				for _, way := range []struct{ method, path, key string }{
					{"GET", "", otherKey}, {"DELETE", "", otherKey}, {"POST", "/cancel", otherKey}, {"GET", "/input_items", otherKey},
				} {
					if code, got := s.read(t, way.method, object.ID+way.path, way.key); code != http.StatusNotFound {
						t.Errorf("another token: %s %s: %d %s", way.method, way.path, code, got)
					}
				}
				if code, got := s.read(t, "POST", object.ID+"/cancel", goodKey); code != http.StatusBadRequest {
					t.Errorf("cancel: %d %s", code, got)
				}
				if code, got := s.read(t, "GET", object.ID+"?stream=true", goodKey); code != http.StatusBadRequest ||
					!strings.Contains(got, `"param":"stream"`) {
					t.Errorf("its events: %d %s", code, got)
				}
				code, got := s.read(t, "DELETE", object.ID, goodKey)
				if want := `{"id":"` + object.ID + `","object":"response","deleted":true}`; code != http.StatusOK || strings.TrimSpace(got) != want {
					t.Errorf("delete: %d %s", code, got)
				}
				if code, got := s.read(t, "GET", object.ID, goodKey); code != http.StatusNotFound {
					t.Errorf("after it is deleted: %d %s", code, got)
				}
			})
		}
	}
}

// TestNotStored: the store field of an answer reports whether the gateway stored it.
func TestNotStored(t *testing.T) {
	t.Parallel()
	s := newStoring(t, nil)
	long := strings.Repeat("long ", 1<<18)
	for name, body := range map[string]string{
		"not wanted":              `{"model":"claude","input":"hi","store":false}`,
		"not wanted, a stream":    `{"model":"claude","input":"hi","store":false,"stream":true}`,
		"a long input":            `{"model":"claude","input":"` + long + `"}`,
		"a long input, a stream":  `{"model":"gemini","input":"` + long + `","stream":true}`,
		"long with its own echo":  `{"model":"claude","input":"hi","instructions":"` + long + `"}`,
		"long with its tools, in": `{"model":"claude","input":"hi","stream":true,"instructions":"` + long + `"}`,
	} {
		object, raw := s.ask(t, body)
		if object.Store {
			t.Errorf("%s: got %.300s", name, raw)
		}
		if code, _ := s.read(t, "GET", object.ID, goodKey); code != http.StatusNotFound {
			t.Errorf("%s: it is found: %d", name, code)
		}
	}
	stored, _ := s.ask(t, `{"model":"claude","input":"hi"}`)
	rec := s.do(t, request("POST", "/v1/responses", `{"model":"claude","input":"hi","store":true}`))
	if dropped := rec.Header().Get("X-Relay-Dropped"); rec.Code != http.StatusOK || dropped != "" {
		t.Errorf("got %d, dropped %q", rec.Code, dropped)
	}
	s.redis.Leave()
	if object, raw := s.ask(t, `{"model":"claude","input":"hi"}`); object.Store {
		t.Errorf("without redis: %s", raw)
	}
	if code, got := s.read(t, "GET", stored.ID, goodKey); code != http.StatusServiceUnavailable {
		t.Errorf("without redis: %d %s", code, got)
	}
	rec = s.do(t, request("POST", "/v1/responses", `{"model":"claude","input":"hi","previous_response_id":"`+stored.ID+`"}`))
	if rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") == "" {
		t.Errorf("without redis: %d %s", rec.Code, rec.Body)
	}
	if _, raw := s.ask(t, `{"model":"gpt","input":"hi","previous_response_id":"resp_`+strings.Repeat("0", 48)+
		`"}`); !strings.Contains(s.sent(), "resp_000") {
		t.Errorf("OpenAI's own without redis: %s sent, %s", s.sent(), raw)
	}
}

// texts are the texts of a request to a Claude model, with their roles.
func texts(t *testing.T, body string) (said []string) {
	t.Helper()
	var sent struct {
		System   json.RawMessage
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	decode(t, []byte(body), &sent)
	if sent.System != nil {
		said = append(said, "system")
	}
	for _, message := range sent.Messages {
		for _, text := range regexp.MustCompile(`"text":"(\w+)"|^"(\w+)"$`).FindAllStringSubmatch(string(message.Content), -1) {
			said = append(said, message.Role+" "+text[1]+text[2])
		}
	}
	return said
}

// TestChain: a response continues from a stored one, by its id or by its items, on whichever model.
func TestChain(t *testing.T) {
	t.Parallel()
	s := newStoring(t, nil)
	first, _ := s.ask(t, `{"model":"claude","input":"one","instructions":"be kind"}`)
	second, raw := s.ask(t, `{"model":"claude","input":[{"role":"user","content":"two"}],"previous_response_id":"`+first.ID+`"}`)
	if second.Previous == nil || *second.Previous != first.ID || second.ID == first.ID {
		t.Errorf("got %s", raw)
	}
	want := "[user one assistant Hello user two]"
	if got := fmt.Sprint(texts(t, s.sent())); got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
	if code, got := s.read(t, "DELETE", first.ID, goodKey); code != http.StatusOK {
		t.Fatalf("%d %s", code, got)
	}
	third := `"model":"claude","input":[{"type":"item_reference","id":"` + second.Output[0].ID + `"},{"role":"user","content":"three"}]`
	s.ask(t, `{`+third+`}`)
	if got := fmt.Sprint(texts(t, s.sent())); got != "[assistant Hello user three]" {
		t.Errorf("sent %s for a reference", got)
	}
	s.ask(t, `{"previous_response_id":"`+second.ID+`",`+third+`}`)
	want = "[user one assistant Hello user two assistant Hello assistant Hello user three]"
	if got := fmt.Sprint(texts(t, s.sent())); got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
	for name, members := range map[string]string{
		"another's response": `"previous_response_id":"` + second.ID + `","input":"x"`,
		"another's item":     `"input":[{"type":"item_reference","id":"` + second.Output[0].ID + `"}]`,
		"no input":           `"previous_response_id":"` + first.ID + `"`,
	} {
		key := otherKey
		if name == "no input" {
			key = goodKey
		}
		rec := s.do(t, request("POST", "/v1/responses", `{"model":"claude",`+members+`}`, "Authorization", "Bearer "+key))
		code, param := fault(t, rec)
		if rec.Code != http.StatusBadRequest || code != "invalid_request" || !strings.HasPrefix(members, `"`+strings.TrimSuffix(param, "[0]")) {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}

	for name, tc := range map[string]struct{ members, want string }{
		"a text":            {`"input":"four"`, "[user one assistant Hello user two assistant Hello user four]"},
		"an escape":         {`"input":"fo\u0075r"`, "[user one assistant Hello user two assistant Hello user four]"},
		"an item":           {`"input":[ {"role":"user","content":"four"} ]`, "[user one assistant Hello user two assistant Hello user four]"},
		"nothing":           {`"input":[ ]`, "[user one assistant Hello user two assistant Hello]"},
		"null":              {`"input":null`, "[user one assistant Hello user two assistant Hello]"},
		"no member":         {`"truncation":"disabled"`, "[user one assistant Hello user two assistant Hello]"},
		"its own directive": {`"input":"four","instructions":"be brief"`, "[system user one assistant Hello user two assistant Hello user four]"},
	} {
		rec := s.do(t, request("POST", "/v1/responses", `{"model":"chat","previous_response_id":"`+second.ID+`",`+tc.members+`}`))
		var sent struct {
			Messages []struct{ Role, Content string }
		}
		decode(t, []byte(s.sent()), &sent)
		var said []string
		for _, message := range sent.Messages {
			if message.Role == "system" {
				message.Content = ""
			}
			said = append(said, strings.TrimSpace(message.Role+" "+message.Content))
		}
		if rec.Code != http.StatusOK || fmt.Sprint(said) != tc.want {
			t.Errorf("%s: %d, sent %q, want %s", name, rec.Code, said, tc.want)
		}
	}
}

// TestChainAtOpenAI: OpenAI does not know the gateway's responses and gets their items. What the gateway does not have passes unchanged,
// unless it is another token's.
func TestChainAtOpenAI(t *testing.T) {
	t.Parallel()
	s := newStoring(t, nil)
	first, _ := s.ask(t, `{"model":"claude","input":"one","reasoning":{"summary":"auto"}}`)
	s.ask(t, `{"model":"gpt","previous_response_id":"`+first.ID+`","input":"two"}`)
	var sent struct {
		Previous *string `json:"previous_response_id"`
		Input    []struct{ Role string }
	}
	decode(t, []byte(s.sent()), &sent)
	if sent.Previous != nil || len(sent.Input) != 3 || sent.Input[1].Role != "assistant" || sent.Input[2].Role != "user" {
		t.Errorf("sent %s", s.sent())
	}
	for _, stream := range []string{"false", "true"} {
		object, raw := s.ask(t, `{"model":"gpt","previous_response_id":"`+first.ID+`","input":"two","stream":`+stream+`}`)
		if object.Previous == nil || *object.Previous != first.ID || object.ID != "resp_1" {
			t.Errorf("stream %s: got %s", stream, raw)
		}
	}
	const unknown = `{"model":"gpt","previous_response_id":"resp_0123456789abcdefghijklmnop","input":[{"type":"item_reference","id":"msg_1234"}]}`
	if s.ask(t, unknown); s.sent() != strings.Replace(unknown, `"gpt"`, `"up"`, 1) {
		t.Errorf("sent %s", s.sent())
	}
	s.ask(t, `{"model":"gpt","input":"one"}`) // resp_1 is the good token's
	for model, want := range map[string]int{"gpt": http.StatusNotFound, "claude": http.StatusBadRequest} {
		rec := s.do(t, request("POST", "/v1/responses", `{"model":"`+model+`","previous_response_id":"resp_1"}`, "Authorization",
			"Bearer "+otherKey))
		if _, param := fault(t, rec); rec.Code != want || param != "previous_response_id" {
			t.Errorf("another token's on %s: %d %s", model, rec.Code, rec.Body)
		}
	}
	for _, tc := range []struct{ method, path, want string }{
		{"GET", "resp_1?include[]=reasoning.encrypted_content&key=x", "GET /responses/resp_1?include%5B%5D=reasoning.encrypted_content"},
		{"GET", "resp_1?stream=true&starting_after=1", "GET /responses/resp_1?starting_after=1&stream=true"},
		{"GET", "resp_1/input_items?limit=3&order=asc&after=a", "GET /responses/resp_1/input_items?after=a&limit=3&order=asc"},
		{"POST", "resp_1/cancel", "POST /responses/resp_1/cancel"},
		{"DELETE", "resp_1", "DELETE /responses/resp_1"},
	} {
		if code, got := s.read(t, tc.method, tc.path, goodKey); code != http.StatusOK || s.sent() != tc.want {
			t.Errorf("%s %s: %d %s, asked %s", tc.method, tc.path, code, got, s.sent())
		}
		if code, got := s.read(t, tc.method, tc.path, otherKey); code != http.StatusNotFound {
			t.Errorf("another token: %s %s: %d %s", tc.method, tc.path, code, got)
		}
	}
}

// TestChainIsBounded: the body with the stored items has the bound of every body.
func TestChainIsBounded(t *testing.T) {
	t.Parallel()
	s := newStoring(t, func(o *api.Options) { o.MaxBody, o.BodyMemory = 64<<10, 1<<20 })
	first, _ := s.ask(t, `{"model":"claude","input":"`+strings.Repeat("long ", 12<<10)+`"}`)
	if !first.Store {
		t.Fatal("it is not stored")
	}
	for model, input := range map[string]string{"claude": strings.Repeat("x", 8<<10), "gpt": strings.Repeat("y", 8<<10)} {
		rec := s.do(t, request("POST", "/v1/responses", `{"model":"`+model+`","previous_response_id":"`+first.ID+`","input":"`+input+`"}`))
		if rec.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d %s", model, rec.Code, rec.Body)
		}
	}
	item := `{"type":"item_reference","id":"` + first.Output[0].ID + `"}`
	rec := s.do(t, request("POST", "/v1/responses", `{"model":"claude","input":[`+strings.Repeat(item+",", 700)+item+`]}`))
	if rec.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("an item many times: %d %s", rec.Code, rec.Body)
	}
	rec = s.do(t, request("POST", "/v1/responses", `{"model":"claude","input":[`+strings.Repeat(`{"id":"a"},`, 2000)+item+`]}`))
	if _, param := fault(t, rec); rec.Code != http.StatusBadRequest || param != "input" {
		t.Errorf("many references: %d %s", rec.Code, rec.Body)
	}
}

// TestInputItems: the list has the response's own input alone, page by page, and each item has an id.
func TestInputItems(t *testing.T) {
	t.Parallel()
	s := newStoring(t, nil)
	first, _ := s.ask(t, `{"model":"claude","input":"one"}`)
	object, _ := s.ask(t, `{"model":"claude","previous_response_id":"`+first.ID+`","input":[{"role":"user","content":"two"},`+
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"r"},`+
		`{"type":"message","role":"assistant","content":"said","id":"msg_own"},{"role":"user","content":[{"type":"input_text","text":"three"}],"id":null}]}`)
	type page struct {
		Object  string
		Data    []map[string]any
		FirstID *string `json:"first_id"`
		LastID  *string `json:"last_id"`
		HasMore bool    `json:"has_more"`
	}
	list := func(id, query string) (p page) {
		t.Helper()
		code, got := s.read(t, "GET", id+"/input_items"+query, goodKey)
		if code != http.StatusOK {
			t.Fatalf("%s: %d %s", query, code, got)
		}
		decode(t, []byte(got), &p)
		for i, item := range p.Data {
			id, _ := item["id"].(string)
			if id == "" || item["type"] == nil || i == 0 && *p.FirstID != id || i == len(p.Data)-1 && *p.LastID != id {
				t.Errorf("%s: item %d: %s", query, i, got)
			}
		}
		return p
	}
	if got := list(first.ID, ""); got.Object != "list" || len(got.Data) != 1 || got.HasMore ||
		fmt.Sprint(got.Data[0]["content"]) != "[map[text:one type:input_text]]" {
		t.Errorf("got %+v", got)
	}
	all := list(object.ID, "?order=asc")
	if len(all.Data) != 5 || all.HasMore || all.Data[3]["id"] != "msg_own" ||
		fmt.Sprint(all.Data[3]["content"]) != "[map[annotations:[] text:said type:output_text]]" {
		t.Fatalf("got %+v", all)
	}
	var ids []any
	for after := ""; ; {
		p := list(object.ID, "?limit=2"+after)
		for _, item := range p.Data {
			ids = append(ids, item["id"])
		}
		if !p.HasMore {
			break
		}
		after = "&after=" + *p.LastID
	}
	for i, id := range ids {
		if want := all.Data[len(all.Data)-1-i]["id"]; len(ids) != 5 || id != want {
			t.Errorf("in pages, last first: %v", ids)
		}
	}
	if p := list(object.ID, "?order=asc&after="+*all.LastID); len(p.Data) != 0 || p.FirstID != nil || p.LastID != nil || p.Data == nil {
		t.Errorf("behind the last: %+v", p)
	}
	for query, want := range map[string]string{
		"limit=0": "limit", "limit=101": "limit", "limit=x": "limit", "order=up": "order",
		"after=msg_x": "after",
	} {
		rec := s.do(t, request("GET", "/v1/responses/"+object.ID+"/input_items?"+query, ""))
		if _, param := fault(t, rec); rec.Code != http.StatusBadRequest || param != want {
			t.Errorf("%s: %d %s", query, rec.Code, rec.Body)
		}
	}
}

// countedStore counts what is looked for.
type countedStore struct {
	openai.StoredResponses
	looked int
}

func (c *countedStore) Find(ctx context.Context, token, id string) (responses.Response, error) {
	c.looked++
	return c.StoredResponses.Find(ctx, token, id)
}

// TestStoredReadsAreLimited: a call is admitted before the store is read for it, and reads of large responses count for several.
func TestStoredReadsAreLimited(t *testing.T) {
	t.Parallel()
	count := new(countedStore)
	s := newStoring(t, func(o *api.Options) { count.StoredResponses, o.Responses = o.Responses, count })
	s.tokens[goodKey].ReadsPerMinute, s.tokens[goodKey].Budget = 5, 1_000_000
	first, _ := s.ask(t, `{"model":"claude","input":"`+strings.Repeat("long ", 40<<10)+`"}`)
	chained := `{"model":"claude","input":"hi","previous_response_id":"` + first.ID + `"}`
	if rec := s.do(t, request("POST", "/v1/responses", chained)); rec.Code != http.StatusOK || count.looked != 1 {
		t.Errorf("%d %s, looked %d times", rec.Code, rec.Body, count.looked)
	}
	s.limits.grant = limits.Grant{Requests: limits.Window{Limit: 1}}
	if rec := s.do(t, request("POST", "/v1/responses", chained)); rec.Code != http.StatusTooManyRequests || count.looked != 1 {
		t.Errorf("beyond its calls: %d %s, looked %d times", rec.Code, rec.Body, count.looked)
	}
	s.limits.grant = limits.Grant{}
	var codes []int
	for range 2 { // each takes four reads, and three are left for the first
		code, _ := s.read(t, "GET", first.ID, goodKey)
		codes = append(codes, code)
	}
	if fmt.Sprint(codes) != "[200 429]" {
		t.Errorf("reads of a large response: %v", codes)
	}
	if rec := s.do(t, request("POST", "/v1/responses", chained)); rec.Code != http.StatusTooManyRequests {
		t.Errorf("a call beyond its reads: %d %s", rec.Code, rec.Body)
	}
}

// holdingRelay answers with a body that reports how much of request bodies is held while it is read.
type holdingRelay struct {
	calls.Relay
	held func()
}

func (h holdingRelay) Do(context.Context, string, *providers.Call) (*relay.Answer, error) {
	body := io.MultiReader(strings.NewReader("{}"), readerFunc(func([]byte) (int, error) { h.held(); return 0, io.EOF }))
	return &relay.Answer{
		Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(body),
		Holds: 10,
	}, nil
}

type readerFunc func(p []byte) (int, error)

func (r readerFunc) Read(p []byte) (int, error) { return r(p) }

// TestAnswerHoldsABody: until its end, an answer holds the room for what it still needs of its request's body, and no more.
func TestAnswerHoldsABody(t *testing.T) {
	t.Parallel()
	var g *gateway
	var held int64
	g = newGateway(t, nil, func(_ *gateway, o *api.Options) { o.Relay = holdingRelay{held: func() { held = g.BodiesTaken() }} })
	if rec := g.do(t, request("POST", "/v1/chat/completions", `{"model":"gpt-4o","messages":[]}`)); rec.Code != http.StatusOK {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	if after := g.BodiesTaken(); held != 10 || after != 0 {
		t.Errorf("%d bytes are held by the answer, %d at its end", held, after)
	}
}

// TestFollowsBackgroundOfAnother: a call that names another token's response in the background reaches no upstream.
func TestFollowsBackgroundOfAnother(t *testing.T) {
	t.Parallel()
	s := newStoring(t, nil)
	for _, model := range []string{"gpt", "claude"} {
		id := "resp_" + fmt.Sprintf("%026d", len(model))
		run := &activities.CallRun{TaskID: id}
		s.serveCall(t.Context(), httptest.NewRecorder(), "/v1/responses", `{"model":"`+model+`","input":"one","background":true}`, run)
		before := s.sent()
		if run.Fault != nil || before == "" {
			t.Fatalf("%s: %v", model, run.Fault)
		}
		for other, status := range map[string]int{"gpt": http.StatusNotFound, "claude": http.StatusBadRequest} {
			for _, more := range []string{"", `,"background":true`} {
				body := `{"model":"` + other + `","input":"two","previous_response_id":"` + id + `"` + more + `}`
				rec := s.do(t, request("POST", "/v1/responses", body, "Authorization", "Bearer "+otherKey))
				if _, param := fault(t, rec); rec.Code != status || param != "previous_response_id" || s.sent() != before || len(s.tasks.creates) != 0 {
					t.Errorf("%s after %s: got %d %s, sent %s", other, model, rec.Code, rec.Body, s.sent())
				}
			}
		}
	}
}

// putResponse adds a completed response in the background that its upstream does not store. items are those from which it continues, "" for
// none.
func putResponse(g *gateway, id, request, items, text string) {
	object := `{"id":"` + id + `","background":true,"status":"completed","output":[{"type":"message","role":"assistant","content":"` + text +
		`"}]}`
	task := endedCall(g, 200, object)
	task.ID, task.Operation, task.Body = id, "POST /v1/responses", "body of "+id
	task.Outputs[0].Object = "answer of " + id
	g.archive[task.Body], g.archive[task.Outputs[0].Object] = []byte(request), []byte(object)
	if items != "" {
		task.Items = "items of " + id
		g.archive[task.Items] = []byte(items)
	}
	g.tasks.put(task)
}

// TestFollowsChain: a call that continues from responses which only their tasks have gets all of their items, though the first is deleted,
// or is refused if they are not stored.
func TestFollowsChain(t *testing.T) {
	t.Parallel()
	s := newStoring(t, nil)
	second, third := "resp_"+strings.Repeat("2", 26), "resp_"+strings.Repeat("3", 26)
	const items = `{"type":"message","role":"user","content":"one"},{"type":"message","role":"assistant","content":"two"}`
	putResponse(s.gateway, second, `{"model":"gpt","input":"three","previous_response_id":"resp_first"}`, items, "four")
	putResponse(s.gateway, third, `{"model":"gpt","input":"three","previous_response_id":"resp_first"}`, "", "four")
	body := `{"model":"claude","input":"five","previous_response_id":"` + second + `"}`
	s.ask(t, body)
	if got := fmt.Sprint(texts(t, s.sent())); got != "[user one assistant two user three assistant four user five]" {
		t.Errorf("sent %s", got)
	}
	before := s.sent()
	rec := s.do(t, request("POST", "/v1/responses", strings.Replace(body, second, third, 1)))
	if _, param := fault(t, rec); rec.Code != http.StatusBadRequest || param != "previous_response_id" || s.sent() != before {
		t.Errorf("without the items: got %d %s", rec.Code, rec.Body)
	}
}

// serveStaged serves a call as a worker does, from what its create has staged, and returns what the upstream received: of a translated call
// only the texts.
func (s *storing) serveStaged(t *testing.T, create tasks.Create) (rec *httptest.ResponseRecorder, run *activities.CallRun, sent string) {
	t.Helper()
	inputs := create.Request.Inputs
	rec, run = httptest.NewRecorder(), &activities.CallRun{TaskID: "resp_22222222222222222222222222", Chain: create.Call.Chain}
	if run.Chain != nil {
		run.Items = func(context.Context) ([]byte, error) { return inputs[1].Data, nil }
	}
	s.serveCall(t.Context(), rec, "/v1/responses", string(inputs[0].Data), run)
	if sent = s.sent(); create.Request.Model == "claude" {
		sent = fmt.Sprint(texts(t, sent))
	}
	return rec, run, sent
}

// TestChainIsStaged: a response from which a background call continues may be deleted before the call is sent.
func TestChainIsStaged(t *testing.T) {
	t.Parallel()
	const first, upstreams = "resp_11111111111111111111111111", "resp_up00000000000000000000000000000000000000000000"
	for name, test := range map[string]struct{ model, made, sent string }{
		"translated":              {"claude", "", "[user one assistant two user three]"},
		"of an upstream":          {"gpt", "", `"content":"one"},{"type":"message","role":"assistant","content":"two"}`},
		"stored by that upstream": {"gpt", upstreams, `"previous_response_id":"` + upstreams + `"`},
		"stored by another's":     {"claude", upstreams, "[user one assistant two user three]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStoring(t, nil)
			putResponse(s.gateway, first, `{"model":"gpt","input":"one"}`, "", "two")
			if test.made != "" {
				task, err := s.tasks.Find(t.Context(), first, "good")
				if err != nil {
					t.Fatal(err)
				}
				task.Call.Copy = &activities.CallTicket{ID: test.made, Channel: "gpt", Key: providers.Secret(channelKey).Fingerprint()}
				s.tasks.put(task)
			}
			body := `{"model":"` + test.model + `","input":"three","previous_response_id":"` + first + `","background":true}`
			if rec := s.do(t, request("POST", "/v1/responses", body)); rec.Code != http.StatusOK {
				t.Fatalf("got %d %s", rec.Code, rec.Body)
			}
			create := s.tasks.creates[len(s.tasks.creates)-1]
			if create.Call.Chain == nil || len(create.Request.Inputs) != 2 || string(create.Request.Inputs[0].Data) != body {
				t.Fatalf("created %+v with %+v", create, create.Call.Chain)
			}
			s.tasks.drop(first)
			rec, run, got := s.serveStaged(t, create)
			if run.Fault != nil || !strings.Contains(got, test.sent) || !strings.Contains(rec.Body.String(), first) {
				t.Errorf("sent %s, got %s, %v", got, rec.Body, run.Fault)
			}
		})
	}
}

// TestReferenceIsStaged: the items to which a background call refers may be deleted before the call is sent.
func TestReferenceIsStaged(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		model, member, prefer, chain, want string
	}{
		"background": {model: "claude", member: `,"background":true`, want: "[user zero assistant Hello user three]"},
		"prefer":     {model: "claude", prefer: "respond-async", want: "[user zero assistant Hello user three]"},
		"with a chain": {
			model: "claude", prefer: "respond-async", chain: "first",
			want: "[user one assistant Hello user zero assistant Hello user three]",
		},
		"of an upstream": {model: "gpt", member: `,"background":true`, want: `{"role":"user","content":"zero"},{"type":"message",`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStoring(t, nil)
			first, _ := s.ask(t, `{"model":"claude","input":"one"}`)
			reference := `{"type":"item_reference","id":"` + first.Output[0].ID + `"}`
			input := `[{"role":"user","content":"zero"},` + reference + `,{"role":"user","content":"three"}]`
			body := `{"model":"` + test.model + `","input":` + input + test.member
			if test.chain != "" {
				body += `,"previous_response_id":"` + first.ID + `"`
			}
			rec := s.do(t, request("POST", "/v1/responses", body+"}", "Prefer", test.prefer))
			if rec.Code/100 != 2 || len(s.tasks.creates) != 1 {
				t.Fatalf("got %d %s", rec.Code, rec.Body)
			}
			if code, got := s.read(t, "DELETE", first.ID, goodKey); code != http.StatusOK {
				t.Fatalf("delete: %d %s", code, got)
			}
			_, run, got := s.serveStaged(t, s.tasks.creates[0])
			if run.Fault != nil || !strings.Contains(got, test.want) || strings.Contains(got, "item_reference") {
				t.Errorf("sent %s, want %s: %v", got, test.want, run.Fault)
			}
		})
	}
}

// inMemory is a worker's answer that is in memory.
type inMemory struct{ *httptest.ResponseRecorder }

func (m inMemory) Held() []byte { return m.Body.Bytes() }

// TestSavesChain: a response in the background is stored with its whole chain, though an earlier one is deleted meanwhile, or not at all.
func TestSavesChain(t *testing.T) {
	t.Parallel()
	const first, id = "resp_11111111111111111111111111", "resp_22222222222222222222222222"
	for name, test := range map[string]struct {
		model  string
		text   int
		stored bool
	}{
		"small": {"claude", 10, true}, "of an upstream": {"gpt", 10, true}, "too large": {"claude", responses.MaxSize, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var saved []string
			s := newStoring(t, func(o *api.Options) {
				o.SaveResponse = func(_ context.Context, _, id string, _, earlier, input []byte) {
					saved = append(saved, id+" "+string(earlier)+" "+string(input))
				}
			})
			putResponse(s.gateway, first, `{"model":"gpt","input":"one"}`, "", strings.Repeat("x", test.text))
			run := &activities.CallRun{TaskID: id, Begin: func(context.Context, string) error {
				s.tasks.drop(first)
				return nil
			}}
			body := `{"model":"` + test.model + `","input":"two","previous_response_id":"` + first + `","background":true}`
			s.serveCall(t.Context(), inMemory{httptest.NewRecorder()}, "/v1/responses", body, run)
			if run.Fault != nil || len(saved) > 1 || (len(saved) == 1) != test.stored {
				t.Fatalf("stored %d, %v", len(saved), run.Fault)
			}
			for _, one := range saved {
				if !strings.HasPrefix(one, id+` {"type":"message","role":"user","content":"one"},{`) ||
					!strings.HasSuffix(one, `} {"type":"message","role":"user","content":"two"}`) {
					t.Errorf("stored %s", one)
				}
			}
		})
	}
}

// TestFollowsBackground: a call that continues from a response in the background has the upstream's id at the channel and key that made it,
// and the stored items on any other model. Its answer names the client's id.
func TestFollowsBackground(t *testing.T) {
	t.Parallel()
	const made = "resp_up00000000000000000000000000000000000000000000"
	for name, stored := range map[string]bool{"stored in Redis": true, "too large for Redis": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var store *responses.Store
			origins := &madeBy{ids: map[string]relay.Origin{
				made: {KeyRef: providers.KeyRef{Channel: "gpt", Fingerprint: providers.Secret(channelKey).Fingerprint()}, Token: "good"},
			}}
			s := newStoring(t, func(o *api.Options) { store, _ = o.Responses.(*responses.Store) }, origins)
			id := "resp_" + strings.Repeat("0", 26)
			object := `{"id":"` + id + `","background":true,"status":"completed","output":[{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Hello"}]}]}`
			task := endedCall(s.gateway, 200, object)
			task.ID, task.Operation, task.Body = id, "POST /v1/responses", "body"
			task.Call.Copy = &activities.CallTicket{ID: made, Channel: "gpt", Key: providers.Secret(channelKey).Fingerprint()}
			s.archive["body"] = []byte(`{"model":"gpt","input":"one","background":true}`)
			s.tasks.put(task)
			if stored {
				if err := store.Save(t.Context(), "good", id,
					responses.Response{Object: []byte(object), Input: []byte(`{"type":"message","role":"user","content":"one"}`)}, time.Hour); err != nil {
					t.Fatal(err)
				}
			}
			s.ask(t, `{"model":"gpt","input":"two","previous_response_id":"`+id+`"}`)
			if sent := s.sent(); !strings.Contains(sent, `"previous_response_id":"`+made+`"`) || strings.Contains(sent, "Hello") ||
				!strings.Contains(sent, `"input":"two"`) {
				t.Errorf("sent %s", sent)
			}
			s.ask(t, `{"model":"claude","input":"two","previous_response_id":"`+id+`"}`)
			if got := fmt.Sprint(texts(t, s.sent())); got != "[user one assistant Hello user two]" {
				t.Errorf("another model: sent %s", got)
			}
			origins.mu.Lock()
			clear(origins.ids)
			origins.mu.Unlock()
			s.ask(t, `{"model":"gpt","input":"two","previous_response_id":"`+id+`"}`)
			if sent := s.sent(); !strings.Contains(sent, `"previous_response_id":"`+made+`"`) {
				t.Errorf("by the task's own record: sent %s", sent)
			}
			origins.mu.Lock()
			clear(origins.ids)
			origins.mu.Unlock()
			task.Call.Copy = &activities.CallTicket{ID: made, Channel: "gpt", Key: "gone"}
			s.tasks.put(task)
			s.ask(t, `{"model":"gpt","input":"two","previous_response_id":"`+id+`"}`)
			if sent := s.sent(); strings.Contains(sent, made) || !strings.Contains(sent, "Hello") ||
				!strings.Contains(sent, `"previous_response_id":null`) {
				t.Errorf("without the key that made it: sent %s", sent)
			}
			rec := s.do(t, request("POST", "/v1/responses", `{"model":"gpt","input":"two","previous_response_id":"`+id+`"}`, "Authorization",
				"Bearer "+otherKey))
			if strings.Contains(s.sent(), "Hello") && strings.Contains(rec.Body.String(), "Hello") {
				t.Errorf("another token: %d %s", rec.Code, rec.Body)
			}
		})
	}
}
