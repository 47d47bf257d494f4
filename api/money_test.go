package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/providers/vendors"
	"modelrelay/storage/ledger"
	"modelrelay/storage/limits"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
	"modelrelay/storage/tokens"
)

func rate(tb testing.TB, text string) *pricing.Rate {
	tb.Helper()
	r, err := pricing.ParseRate(text, 1)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// priced gives the gateway a list where a token of input costs 1, one of output 2 and a call 100 billionths, and the
// caller a budget.
func priced(tb testing.TB, budget float64) func(*gateway, *api.Options) {
	tb.Helper()
	price := pricing.Price{Input: rate(tb, "0.000000001"), Output: rate(tb, "0.000000002"), Request: rate(tb, "0.0000001")}
	return func(g *gateway, o *api.Options) {
		g.tokens[goodKey] = &tokens.Token{ID: "good", Name: "good", Group: "default", Models: []string{"*"}, Budget: budget}
		o.Prices = pricing.NewList(map[string]pricing.Price{"gpt-4o": price})
	}
}

func TestBudgetReservesWhatACallMayCost(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, priced(t, 1))
	for body, output := range map[string]int{
		`{"model":"gpt-4o","messages":[],"max_completion_tokens":50,"n":3}`: 150,
		`{"model":"gpt-4o","messages":[],"max_tokens":7}`:                   7,
		`{"model":"gpt-4o","messages":[]}`:                                  4096,
	} {
		if rec := g.do(t, request("POST", "/v1/chat/completions", body)); rec.Code != 200 {
			t.Fatalf("got %d %s", rec.Code, rec.Body)
		}
		got := g.limits.costs[len(g.limits.costs)-1]
		want := limits.Cost{Requests: 1, Tokens: len(body) / 4, Money: int64(100 + len(body)/4 + 2*output), Model: "gpt-4o"}
		if got != want {
			t.Errorf("%s reserved %+v, want %+v", body, got, want)
		}
	}
	g.do(t, request("POST", "/v1/chat/completions", `{"model":"fast","messages":[]}`))
	if got := g.limits.costs[len(g.limits.costs)-1]; got.Money != 0 || got.Requests != 1 {
		t.Errorf("a model without a price reserved %+v", got)
	}
	n := len(g.limits.costs)
	g.do(t, request("POST", "/v1/chat/completions", `{"model":"unknown","messages":[]}`))
	g.do(t, request("POST", "/v1/videos", `{"model":"sora-2","prompt":"p"}`))
	if costs := g.limits.costs[n:]; len(costs) != 3 || costs[1].Requests != 1 || costs[2] != (limits.Cost{}) {
		t.Errorf("admitted %+v, want each counted once, and its money reserved once", costs)
	}
}

// TestBudgetReservesTheLargestThatIsAskedFor: if a call bounds its output under several names, the largest number is reserved. A number
// that is too large for an integer counts as the largest.
func TestBudgetReservesTheLargestThatIsAskedFor(t *testing.T) {
	t.Parallel()
	endpoints := []providers.Endpoint{
		chat,
		{Format: providers.OpenAI, Operation: providers.Completions},
		{Format: providers.OpenAI, Operation: providers.Responses},
		{Format: providers.Anthropic, Operation: providers.Messages},
		{Format: providers.Gemini, Operation: providers.GenerateContent},
	}
	vendor := relayer(func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
		return upstreamAnswer("application/json", `{}`), nil
	})
	catalog := providers.Catalog{"all": {Name: "all", Relay: vendor, Endpoints: endpoints}}
	router := router.New(catalog, []providers.Channel{{
		Name: "main", Vendor: "all", BaseURL: "http://upstream.invalid", Keys: []providers.Secret{"k"},
		Models: map[string]string{"gpt-4o": ""}, Groups: []string{"default"},
	}}, nil)
	give := priced(t, 1)
	g := newGateway(t, nil, func(g *gateway, o *api.Options) {
		give(g, o)
		o.Router, o.Relay = router, relay.New(router, catalog, nil)
	})
	const most = 1 << 31
	const (
		chats, responses, completions = "/v1/chat/completions", "/v1/responses", "/v1/completions"
		messages, generate            = "/v1/messages", "/v1beta/models/gpt-4o:generateContent"
	)
	for _, tc := range []struct {
		path, members string
		output        int64
	}{
		{chats, `"messages":[],"max_completion_tokens":1,"max_tokens":50000`, 50000},
		{chats, `"messages":[],"max_tokens":1,"max_completion_tokens":50000`, 50000},
		{chats, `"messages":[],"max_tokens":1,"max_output_tokens":50000`, 50000},
		{chats, `"messages":[],"max_tokens":1,"max_output_tokens":"50000"`, 50000},
		{chats, `"messages":[],"max_tokens":4294967296`, most},
		{chats, `"messages":[],"max_tokens":9223372036854775808`, most},
		{chats, `"messages":[],"max_tokens":1e400`, 0}, // no integer
		{chats, `"messages":[],"max_output_tokens":9223372036854775808`, most},
		{chats, `"messages":[],"max_tokens":1e6`, 1e6},
		{chats, `"messages":[],"max_output_tokens":1e400`, most},
		{chats, `"messages":[],"max_output_tokens":12.9`, 12},
		{chats, `"messages":[],"max_tokens":-1`, 4096},
		{chats, `"messages":[],"max_tokens":0`, 4096},
		{chats, `"messages":[],"max_output_tokens":["9"]`, 4096},
		{chats, `"messages":[],"max_output_tokens":"NaN"`, 4096},
		{chats, `"messages":[],"max_tokens":10,"n":2,"best_of":5`, 50},
		{chats, `"messages":[],"max_tokens":4294967296,"n":4294967296`, most * most},
		{completions, `"prompt":"p","max_tokens":10,"best_of":20`, 200},
		{completions, `"prompt":["a","b","c"],"max_tokens":10,"n":2`, 60},
		{completions, `"prompt":[[1,2],[3]],"max_tokens":10`, 20},
		{completions, `"prompt":[1,2,3],"max_tokens":10`, 10},
		{responses, `"input":"i","max_output_tokens":1,"max_tokens":70000`, 70000},
		{messages, `"messages":[],"max_tokens":100`, 100},
		{messages, `"messages":[],"max_tokens":100,"thinking":{"type":"enabled","budget_tokens":30000}`, 30000},
		{generate, `"contents":[]`, 4096},
		{generate, `"contents":[],"generationConfig":{"maxOutputTokens":70000,"candidateCount":3}`, 210000},
		{generate, `"contents":[],"generation_config":{"max_output_tokens":70000,"candidate_count":"3"}`, 210000},
		{generate, `"contents":[],"generationConfig":{"max_output_tokens":"70000"}`, 70000},
		{generate, `"contents":[],"generationConfig":{"maxOutputTokens":1,"thinkingConfig":{"thinkingBudget":24576}}`, 24576},
		{generate, `"contents":[],"generation_config":{"max_output_tokens":1,"thinking_config":{"thinking_budget":24576}}`, 24576},
	} {
		body := `{"model":"gpt-4o",` + tc.members + `}`
		g.limits.costs = nil
		rec := g.do(t, request("POST", tc.path, body, "Anthropic-Version", "2023-06-01"))
		if tc.output == 0 {
			if rec.Code != 400 || len(g.limits.costs) > 1 {
				t.Errorf("%s: got %d %s", body, rec.Code, rec.Body)
			}
			continue
		}
		want := int64(math.MaxInt64)
		if tc.output < most*most {
			want = 100 + int64(len(body)/4) + 2*tc.output
		}
		if rec.Code != 200 || len(g.limits.costs) != 1 || g.limits.costs[0].Money != want {
			t.Errorf("%s: got %d and %+v, want %d reserved", body, rec.Code, g.limits.costs, want)
		}
	}
}

// TestBudgetReservesEveryImage: the reservation covers all requested images, for each place of a request that may specify their number.
func TestBudgetReservesEveryImage(t *testing.T) {
	t.Parallel()
	image := pricing.Price{Image: rate(t, "0.00001")}
	give := priced(t, 1)
	g := newGateway(t, nil, func(g *gateway, o *api.Options) {
		give(g, o)
		o.Prices = pricing.NewList(map[string]pricing.Price{"gpt-4o": image})
	})
	for body, want := range map[string]int64{
		`{"model":"gpt-4o","prompt":"p"}`:       1,
		`{"model":"gpt-4o","prompt":"p","n":3}`: 3,
		`{"model":"gpt-4o","input":{"messages":[{"role":"user","content":[{"image":"https://x.example/a.png"},{"text":"p"}]}]},"parameters":{"n":4}}`: 4,
	} {
		g.do(t, request("POST", "/v1/images/edits", body))
		if len(g.limits.costs) == 0 {
			t.Fatalf("%s was not admitted", body)
		}
		if got := g.limits.costs[len(g.limits.costs)-1].Money; got != want*10_000 {
			t.Errorf("%s reserved %d, want %d images", body, got, want)
		}
	}
}

func TestBudgetUsedUp(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, priced(t, 1))
	g.limits.grant = limits.Grant{Spent: true, RetryAfter: time.Minute}
	rec := g.do(t, request("POST", "/v1/chat/completions", smallChat))
	if code, _ := fault(t, rec); rec.Code != 429 || code != "insufficient_quota" || rec.Header().Get("X-Should-Retry") != "false" ||
		rec.Header().Get("Retry-After") != "60" {
		t.Errorf("got %d %v %s", rec.Code, rec.Header(), rec.Body)
	}
	if len(g.ledger.entries) != 0 {
		t.Errorf("ledger %+v", g.ledger.entries)
	}
}

// TestCost: the ledger has the cost of a call, also if its answer breaks off or its client leaves.
func TestCost(t *testing.T) {
	t.Parallel()
	const plain, stream = "application/json", "text/event-stream"
	usage := `"usage":{"prompt_tokens":11,"completion_tokens":7}`
	event := `data: {"choices":[{"delta":{"content":"` + strings.Repeat("x", 400) + `"}}]}` + "\n\n"
	length := len(event) + 130 // and of the error event
	for name, tc := range map[string]struct {
		kind, answer      string
		breaks            bool
		input, output     int64
		cost              int64
		failed, estimated bool
	}{
		"a document": {plain, `{"choices":[],` + usage + `}`, false, 11, 7, 100 + 11 + 14, false, false},
		"a stream":   {stream, event + "data: {\"choices\":[]," + usage + "}\n\ndata: [DONE]\n\n", false, 11, 7, 125, false, false},
		"a document without usage": {
			plain, `{"choices":"` + strings.Repeat("x", 400) + `"}`, false, int64(len(streamWithUsage) / 4), 103,
			int64(100 + len(streamWithUsage)/4 + 206), false, true,
		},
		"a stream that breaks": {
			stream, event, true, int64(len(streamWithUsage) / 4), int64(length / 100),
			int64(100 + len(streamWithUsage)/4 + 2*(length/100)), true, true,
		},
		"one that breaks at once": {stream, "data: {", true, 0, 0, 0, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
				resp := upstreamAnswer(tc.kind, "")
				body := io.Reader(strings.NewReader(tc.answer))
				if tc.breaks {
					body = io.MultiReader(body, iotest.ErrReader(io.ErrUnexpectedEOF))
				}
				resp.Body = io.NopCloser(body)
				return resp, nil
			}, priced(t, 0))
			g.do(t, request("POST", "/v1/chat/completions", streamWithUsage))
			want := ledger.Entry{
				Token: "good", Model: "gpt-4o", Channel: "main", Requests: 1, Failed: tc.failed,
				InputTokens: tc.input, OutputTokens: tc.output, Cost: tc.cost,
			}
			if len(g.ledger.entries) != 1 || g.ledger.entries[0] != want {
				t.Errorf("got  %+v\nwant %+v", g.ledger.entries, want)
			}
			log := g.log.String()
			if got := strings.Contains(log, `"estimated":true`); got != tc.estimated ||
				!strings.Contains(log, fmt.Sprintf(`"cost":"%s"`, pricing.Money(tc.cost))) {
				t.Errorf("log %s", log)
			}
		})
	}
}

// TestCostOfImagesWithoutUsage: images that are charged by tokens cost an estimate if the upstream does not report the tokens.
func TestCostOfImagesWithoutUsage(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
		return upstreamAnswer("application/json", `{"created":1,"data":[{"b64_json":"aGk="},{"b64_json":"aGk="}]}`), nil
	}, func(g *gateway, o *api.Options) {
		priced(t, 0)(g, o)
		vendor := vendors.New(http.DefaultClient)["openai"]
		vendor.Relay = g.upstream
		catalog := providers.Catalog{"openai": vendor}
		routes := router.New(catalog, []providers.Channel{{
			Name: "main", Vendor: "openai", Keys: []providers.Secret{"up-key"}, Models: map[string]string{"gpt-4o": ""}, Groups: []string{"default"},
		}}, nil)
		o.Router, o.Relay = routes, relay.New(routes, catalog, &relay.Options{MaxAttempts: 1})
	})
	const body = `{"model":"gpt-4o","prompt":"a white lighthouse","n":2}`
	rec := g.do(t, request("POST", "/v1/images/generations", body))
	const input, output = int64(len(body) / 4), 2 * 1056
	want := ledger.Entry{
		Token: "good", Model: "gpt-4o", Channel: "main", Requests: 1, Images: 2,
		InputTokens: input, OutputTokens: output, Cost: 100 + input + 2*output,
	}
	if len(g.ledger.entries) != 1 || g.ledger.entries[0] != want || !strings.Contains(g.log.String(), `"estimated":true`) {
		t.Errorf("%d %s: got  %+v\nwant %+v", rec.Code, rec.Body, g.ledger.entries, want)
	}
}

// TestBudgetOfAnAnswer: with the real limits, the reservation of a call is its cost before the client receives the last byte. The ledger's
// entry ends the reservation.
func TestBudgetOfAnAnswer(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	limiter, usage := limits.New(client, nil), ledger.NewUsage(client, nil)
	t.Cleanup(func() {
		_ = limiter.Close(context.WithoutCancel(t.Context()))
		_ = usage.Close(context.WithoutCancel(t.Context()))
	})
	give := priced(t, 0.00002) // two calls' estimates and a half
	g := newGateway(t, func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
		return upstreamAnswer("application/json", `{"choices":[],"usage":{"prompt_tokens":4000,"completion_tokens":1000}}`), nil
	}, func(g *gateway, o *api.Options) {
		give(g, o)
		o.Limits, o.Ledger = limiter, usage
	})
	var codes []int
	for range 4 { // each costs 6100; the third and fourth estimate does not fit
		codes = append(codes, g.do(t, request("POST", "/v1/chat/completions", `{"model":"gpt-4o","messages":[]}`)).Code)
	}
	if err := usage.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	balance, err := ledger.NewBudgets(client, 0).Balance(t.Context(), "good")
	if err != nil || fmt.Sprint(codes) != "[200 200 429 429]" || balance != (ledger.Balance{Spent: 12200}) {
		t.Errorf("got %v and %+v, %v", codes, balance, err)
	}
}

// TestClientLeavesBehindTheLastEvent: a stream whose client leaves after the last event counts as complete.
func TestClientLeavesBehindTheLastEvent(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(ctx context.Context, _ providers.Target, _ *providers.Call) (*http.Response, error) {
		resp := upstreamAnswer("text/event-stream", "")
		reader, writer := io.Pipe()
		go func() {
			_, _ = io.WriteString(writer, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":7}}\n\ndata: [DONE]\n\n")
			<-ctx.Done()
			writer.CloseWithError(ctx.Err())
		}()
		resp.Body = reader
		return resp, nil
	}, nil)
	server := httptest.NewServer(g.Handler())
	t.Cleanup(server.Close)
	ctx, leave := context.WithCancel(t.Context())
	req := request("POST", server.URL+"/v1/chat/completions", streamWithUsage).WithContext(ctx)
	req.RequestURI = ""
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan() && lines.Text() != "data: [DONE]"; {
	}
	leave()
	testwait.Eventually(t, "the log has the request", patience, func() bool { return strings.Contains(g.log.String(), `"msg":"request"`) })
	if log := g.log.String(); len(g.ledger.entries) != 1 || g.ledger.entries[0].Failed || g.ledger.entries[0].OutputTokens != 7 ||
		!strings.Contains(log, `"status":200`) {
		t.Errorf("ledger %+v, log %s", g.ledger.entries, log)
	}
}
