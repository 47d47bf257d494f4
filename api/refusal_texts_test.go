package api_test

import (
	"strings"
	"testing"

	"modelrelay/api"
)

// TestRefusalsNameTheMistake: what is wrong with a request as a whole is said in words that lead to the mistake, and that
// show nothing of the gateway's inside.
func TestRefusalsNameTheMistake(t *testing.T) {
	t.Parallel()
	const chat, tokens = "/v1/chat/completions", "/admin/tokens"
	g := newGateway(t, nil, func(_ *gateway, o *api.Options) { o.MaxBody = 1 << 20 })
	o := newAdminEnv(t)
	deep := strings.Repeat("[", 10_100) + strings.Repeat("]", 10_100)
	for _, test := range []struct {
		name, path, body string
		param, want      string
	}{
		{"nothing", chat, "", "", "The request body is empty: a JSON object is required."},
		{"white space", chat, " \n", "", "The request body is empty: a JSON object is required."},
		{"nested too deeply", chat, `{"model":"m","messages":[],"x":` + deep + `}`, "", "The request body is nested too deeply at byte "},
		{"too deeply in a field", chat, `{"model":"m","messages":[{"x":` + deep + `}]}`, "", "The request body is nested too deeply at byte "},
		{"cut", chat, `{"model":"m"`, "", "The request body is not valid JSON at byte 12."},
		{"too large", chat, strings.Repeat(" ", 1<<20+1), "", "The request body is too large: it may have 1 MiB."},
		{"no operation", "/chat/completions", "{}", "", "There is nothing at this path. /docs lists all paths."},
		{"no token", tokens, "", "", "The request body is empty: a JSON object is required."},
		{
			"more than an integer holds", tokens, `{"name":"a","requests_per_minute":1e30}`, "requests_per_minute",
			`Invalid value for "requests_per_minute": out of range.`,
		},
	} {
		ask := g.do
		req := request("POST", test.path, test.body)
		if test.path == tokens {
			ask = o.do
			req.Header.Set("Authorization", "Bearer "+o.key)
		}
		var got openAIError
		rec := ask(t, req)
		decode(t, rec.Body.Bytes(), &got)
		if _, param := fault(t, rec); param != test.param || !strings.HasPrefix(got.Error.Message, test.want) {
			t.Errorf("%s: got %s, want param %q and %q", test.name, rec.Body, test.param, test.want)
		}
	}
}
