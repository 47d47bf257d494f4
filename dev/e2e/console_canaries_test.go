package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage"
	"modelrelay/storage/testwait"
)

// person is a browser without a screen: it has cookies, and notes where it has been led.
type person struct {
	t    *testing.T
	base string
	http *http.Client
	led  []string // addresses of answers that lead on
}

func newPerson(t *testing.T, g *stack.Gateway) *person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &person{t: t, base: g.URL()}
	p.http = &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return p
}

// do sends a request and returns the whole answer, head and body; what it leads to is followed.
func (p *person) do(method, path string, form url.Values) string {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", p.base)
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	resp, err := p.http.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	text := string(body)
	if to := resp.Header.Get("Location"); to != "" {
		p.led = append(p.led, to)
		next, err := resp.Request.URL.Parse(to)
		if err != nil {
			p.t.Fatal(err)
		}
		text += p.do(http.MethodGet, next.RequestURI(), nil)
	}
	return text
}

// secret is the value of the session's cookie.
func (p *person) secret() string {
	p.t.Helper()
	at, err := url.Parse(p.base + "/console")
	if err != nil {
		p.t.Fatal(err)
	}
	for _, cookie := range p.http.Jar.Cookies(at) {
		if cookie.Name == "relay" {
			return cookie.Value
		}
	}
	p.t.Fatal("nobody has signed in")
	return ""
}

// shownOnce is what an answer shows once: the only value that is to be copied and matches.
func (p *person) shownOnce(body, pattern string) string {
	p.t.Helper()
	found := regexp.MustCompile(`data-copy="(` + pattern + `)"`).FindStringSubmatch(body)
	if found == nil {
		p.t.Fatalf("the answer shows no %s:\n%.3000s", pattern, body)
	}
	return html.UnescapeString(found[1])
}

// TestConsoleCanaries: each kind of key and secret is only in the answer that made it, and in no page, asset, address, log line, entry of
// the audit log, other answer of the API or value of Redis. One exception: Redis has a token's webhook secret in the token's record,
// because it signs.
func TestConsoleCanaries(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.SharedRelay(t).OwnRedis()
	const operatorKey, viewerKey, tokenKey = "canary-of-operator-anna", "canary-of-viewer-vera", "sk-canary-of-a-token"
	g := s.StartGateway(stack.GatewayOptions{
		AdminKey: stack.AdminKey,
		Channels: s.Channel("main", "sk-upstream-canary", ""),
		Tokens: "  - {name: file, key: " + tokenKey +
			", webhook_url: \"https://client.example/hook\", webhook_secret: whsec_Y2FuYXJ5LW9mLWEtd2ViaG9vay1zZWNyZXQ=}\n",
		More: "operators:\n  - {name: anna, key: " + operatorKey + ", role: operator}\n  - {name: vera, key: " + viewerKey +
			", role: viewer}\n",
	})
	canaries := map[string]string{
		"admin_key": stack.AdminKey, "an operator's key": operatorKey, "a viewer's key": viewerKey, "a token's key in the file": tokenKey,
		"a vendor's key": "sk-upstream-canary", "a channel's typed key": "sk-upstream-typed", "the store's key": stack.SecretKey,
		"a webhook's secret in the file": "whsec_Y2FuYXJ5LW9mLWEtd2ViaG9vay1zZWNyZXQ=",
	}
	link := strings.TrimSpace(g.Run("console", "--operator", "anna"))
	canaries["a sign-in link's code"] = link[strings.LastIndexByte(link, '/')+1:]
	anna, vera, holder := newPerson(t, g), newPerson(t, g), newPerson(t, g)
	anna.do(http.MethodPost, strings.TrimPrefix(link, g.URL()), url.Values{})
	vera.do(http.MethodPost, "/console/sign-in", url.Values{"key": {viewerKey}})
	holder.do(http.MethodPost, "/console/sign-in", url.Values{"key": {tokenKey}})
	newPerson(t, g).do(http.MethodPost, "/console/sign-in", url.Values{"key": {"sk-canary-that-is-wrong"}})
	canaries["a wrong key"] = "sk-canary-that-is-wrong"
	canaries["an operator's session"], canaries["a viewer's session"], canaries["a holder's session"] = anna.secret(), vera.secret(),
		holder.secret()

	made := anna.do(http.MethodPost, "/console/tokens/new", url.Values{
		"do": {"create"}, "name": {"made"}, "group": {"default"}, "models": {"*"}, "lane": {"normal"},
		"operations": {"relay", "video", "realtime"},
	})
	canaries["a new token's key"] = anna.shownOnce(made, `sk-[^"]+`)
	canaries["a rotated key"] = anna.shownOnce(anna.do(http.MethodPost, "/console/tokens/made", url.Values{"do": {"rotate"}}), `sk-[^"]+`)
	if status, text := g.Admin(http.MethodPatch, "/admin/tokens/made", `{"webhook_url":"https://client.example/made","webhook_secret":"new"}`,
		nil); status != http.StatusOK {
		t.Fatalf("a webhook: %d %s", status, text)
	}
	canaries["a new webhook secret"] = anna.shownOnce(anna.do(http.MethodPost, "/console/tokens/made", url.Values{"do": {"secret"}}),
		`whsec_[^"]+`)
	given := anna.shownOnce(anna.do(http.MethodPost, "/console/tokens/made", url.Values{"do": {"link"}}), `http[^"]+/enter/[^"]+`)
	canaries["a holder's sign-in link"] = given[strings.LastIndexByte(given, '/')+1:]
	anna.do(http.MethodPost, "/console/channels/main",
		url.Values{"do": {"test"}, "model": {"gpt-4o"}, "prompt": {"hi"}, "key": {"sk-upstream-typed"}, "pay": {"1"}})
	call := chatOnce(t, g, "gpt-4o")
	for _, key := range []string{canaries["a rotated key"], canaries["a new token's key"], tokenKey} {
		g.Call(t, stack.Request{
			Method: http.MethodPost, Path: "/v1/chat/completions", Token: key,
			Body: `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}`,
		})
	}

	texts := make(map[string]string)
	for name, one := range map[string]*person{"anna": anna, "vera": vera} {
		for _, path := range append(staffPages(call, "video_none", "made"), "/tokens/file", "/channels/main") {
			texts[name+" "+path] = one.do(http.MethodGet, "/console"+path, nil)
		}
	}
	for _, path := range []string{"", "/calls", "/tasks", "/models", "/usage", "/try", "/you"} {
		texts["holder "+path] = holder.do(http.MethodGet, "/console"+path, nil)
	}
	for _, path := range []string{"/", "/console/sign-in"} {
		texts["nobody "+path] = newPerson(t, g).do(http.MethodGet, path, nil)
	}
	for _, path := range regexp.MustCompile(`(?:src|href)="((?:\.\./|\./)*console/assets/[^"]+|(?:\.\./|\./)*assets/[^"]+)"`).FindAllStringSubmatch(texts["anna /try"], -1) {
		at := "/console/assets/" + path[1][strings.Index(path[1], "assets/")+len("assets/"):]
		texts["asset "+at] = anna.do(http.MethodGet, at, nil)
		if len(texts["asset "+at]) < 100 {
			t.Errorf("%s has %d bytes", at, len(texts["asset "+at]))
		}
	}
	for _, path := range []string{
		"/admin/audit?limit=200", "/admin/calls", "/admin/tokens", "/admin/channels", "/admin/setup",
		"/admin/models",
	} {
		status, text := g.Admin(http.MethodGet, path, "", nil)
		if status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
		texts["answer "+path] = text
	}
	for _, what := range []string{"sign_in", "rotate_token", "create_token", "make_sign_in_link"} {
		if !strings.Contains(texts["answer /admin/audit?limit=200"], what) {
			t.Errorf("the audit log has no %s: %.2000s", what, texts["answer /admin/audit?limit=200"])
		}
	}
	texts["addresses"] = strings.Join(slices.Concat(anna.led, vera.led, holder.led), "\n")
	testwait.Eventually(t, "the calls are counted", stack.TaskTimeout, func() bool {
		_, text := g.Admin(http.MethodGet, "/admin/calls/"+call, "", nil)
		return strings.Contains(text, call)
	})
	g.Stop(t)
	texts["log"] = g.Out.Text()
	redisTexts := everyValue(t, s.RedisClient(""))
	if len(redisTexts) < 10 {
		t.Fatalf("Redis has %d keys", len(redisTexts))
	}
	maps.Copy(texts, redisTexts)
	if len(texts) < 80 {
		t.Errorf("%d texts are looked at", len(texts))
	}
	signs := map[string]bool{"a webhook's secret in the file": true, "a new webhook secret": true}
	for kind, canary := range canaries {
		if len(canary) < 10 {
			t.Fatalf("%s is %q", kind, canary)
		}
		for where, text := range texts {
			if signs[kind] && strings.HasPrefix(where, "redis "+storage.Prefix+"token:") {
				continue
			}
			if strings.Contains(where+"\n"+html.UnescapeString(text), canary) {
				t.Errorf("%s stands in %s", kind, where)
			}
		}
	}
}

// everyValue is all that Redis has, by "redis " and the key.
func everyValue(t *testing.T, client redis.UniversalClient) map[string]string {
	t.Helper()
	texts := make(map[string]string)
	for keys := client.Scan(t.Context(), 0, "*", 500).Iterator(); keys.Next(t.Context()); {
		texts["redis "+keys.Val()] = valueOf(t.Context(), client, keys.Val())
	}
	return texts
}

func valueOf(ctx context.Context, client redis.UniversalClient, key string) string {
	var value any
	switch client.Type(ctx, key).Val() {
	case "string":
		value = client.Get(ctx, key).Val()
	case "hash":
		value = client.HGetAll(ctx, key).Val()
	case "list":
		value = client.LRange(ctx, key, 0, -1).Val()
	case "set":
		value = client.SMembers(ctx, key).Val()
	case "zset":
		value = client.ZRangeWithScores(ctx, key, 0, -1).Val()
	case "stream":
		value = client.XRange(ctx, key, "-", "+").Val()
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(raw) + fmt.Sprint(value)
}
