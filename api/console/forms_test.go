package console

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"modelrelay/api/operator"
	"modelrelay/providers"
	"modelrelay/storage/sessions"
	"modelrelay/storage/tokens"
)

// countingBody is a body of zeros that counts the bytes that are read.
type countingBody struct{ left, read int }

// Read gives zeros.
func (c *countingBody) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), c.left)
	clear(p[:n])
	c.left, c.read = c.left-n, c.read+n
	return n, nil
}

// TestFormsAreBounded: the console holds a form in memory, so its size is bounded by the user's role and by the path. The check
// of the role comes before the first byte is read.
func TestFormsAreBounded(t *testing.T) {
	t.Parallel()
	const sent = 16 << 20
	h := newHouse(t, nil)
	for _, test := range []struct {
		user, path string
		most       int
	}{
		{"", "/console/sign-in", maxEntry},
		{"", "/console/appearance", maxEntry},
		{"app", "/console/models", 0}, // the form of price lists is the operators'
		{"vera", "/console/models", 0},
		{"app", "/console/tokens", 0},
		{"app", "/console/tasks/x", maxForm + formMargin},
		{"anna", "/console/tokens", maxForm + formMargin},
		{"anna", "/console/models", operator.MostPriceList + formMargin},
	} {
		b := &browser{h: h}
		if test.user != "" {
			b = h.as(t, test.user)
		}
		for kind, begin := range map[string]string{
			"application/x-www-form-urlencoded": "do=draft&list=",
			"multipart/form-data; boundary=x":   "--x\r\nContent-Disposition: form-data; name=\"list\"\r\n\r\n",
		} {
			body := &countingBody{left: sent}
			r := httptest.NewRequest(http.MethodPost, "http://localhost:8080"+test.path, io.MultiReader(strings.NewReader(begin), body))
			r.Header.Set("Content-Type", kind)
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			b.do(r)
			if slack := 64 << 10; body.read > test.most+slack || test.most == 0 && body.read > 0 { // a reader's own buffer
				t.Errorf("%q at %s as %s: %d bytes were read, want %d at most", test.user, test.path, kind, body.read, test.most)
			}
		}
	}
}

// TestSignInsAreBounded: the audit log records a bounded number of sign-ins, so an unauthenticated client or a holder that signs
// in without end cannot push out the entries of operators.
func TestSignInsAreBounded(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	b := &browser{h: h}
	for n := range 3 * mostWrong {
		wrong := b.post("/console/sign-in", url.Values{"key": {"wrong"}})
		link := b.post("/console/enter/wrong", nil)
		want := [2]int{http.StatusForbidden, http.StatusNotFound}
		if 2*n >= mostWrong { // keys and links count together
			want = [2]int{http.StatusTooManyRequests, http.StatusTooManyRequests}
		}
		if got := [2]int{wrong.Code, link.Code}; got != want {
			t.Errorf("attempt %d: got %v, want %v", n, got, want)
		}
	}
	checkPage(t, "wait", b.post("/console/enter/wrong", nil))
	if got := len(h.entries); got != mostWrong {
		t.Errorf("%d attempts were noted, want %d", got, mostWrong)
	}
	code, _ := h.sessions.Offer(t.Context(), sessions.Link{Kind: OperatorKind, Owner: "anna"}, time.Minute)
	if rec := b.post("/console/enter/"+code, nil); rec.Code != http.StatusSeeOther {
		t.Errorf("a good link after that: got %d, want 303", rec.Code)
	}
	if rec := (&browser{h: h}).post("/console/sign-in", url.Values{"key": {"app"}}); rec.Code != http.StatusSeeOther {
		t.Errorf("a good key after that: got %d, want 303", rec.Code)
	}
	h.sessions.full = true
	before := len(h.entries)
	if rec := (&browser{h: h}).post("/console/sign-in", url.Values{"key": {"app"}}); rec.Code != http.StatusTooManyRequests ||
		len(h.entries) != before {
		t.Errorf("one sign-in too many: got %d with %d notes, want 429 without", rec.Code, len(h.entries)-before)
	}
}

// TestSeveralTokens: a change of several tokens asks first, with their number and names. The answer reports the outcome for each
// token. The same confirmation sent twice changes nothing.
func TestSeveralTokens(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.tokens = []tokens.Token{{ID: "tok_1", Name: "studio"}, {ID: "tok_2", Name: "shop"}}
	h.refused = map[string]error{"tok_2": &providers.Fault{Kind: providers.Conflict, Message: "It has changed."}}
	b := h.as(t, "anna")
	form := url.Values{"do": {"change"}, "id": {"tok_1", "tok_2"}, "field": {"max_tasks"}, "value": {"7"}}
	rec := b.post("/console/tokens", form)
	checkPage(t, "the question", rec)
	wantAll(t, "the question", rec.Body.String(), "Set Unfinished videos of 2 tokens to 7?", "<li>studio<", "<li>shop<", `name="sure"`,
		`<dialog id="ask" data-ask open`, `<form method="dialog" id="ask-no"></form>`, `<button form="ask-no" autofocus>`,
		`value="tok_1" checked`)
	if len(h.did) != 0 {
		t.Fatalf("changed before it was confirmed: %q", h.did)
	}
	form["sure"], form["once"] = []string{"1"}, []string{"word"}
	rec = b.post("/console/tokens", form)
	checkPage(t, "the answer", rec)
	wantAll(t, "the answer", rec.Body.String(), ">shop<", "It has changed.", ">studio<")
	if want := "update tok_1 max_tasks=7 disabled=false"; len(h.did) != 2 || h.did[0] != want {
		t.Errorf("got %q, want %s", h.did, want)
	}
	if rec = b.post("/console/tokens", form); rec.Code != http.StatusConflict || len(h.did) != 2 {
		t.Errorf("sent twice: got %d, %q", rec.Code, h.did)
	}
	wantAll(t, "disable", b.post("/console/tokens", url.Values{"do": {"disable"}, "id": {"tok_1"}}).Body.String(),
		"Disable 1 token? Calls with it are")
	form = url.Values{"do": {"enable"}}
	for i := range mostChosen + 1 {
		form.Add("id", strconv.Itoa(i))
	}
	if rec = b.post("/console/tokens", form); rec.Code != http.StatusBadRequest {
		t.Errorf("too many: got %d", rec.Code)
	}
}

// TestShortcuts: each shortcut leads to one page.
func TestShortcuts(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for _, p := range allPages() {
		switch before, twice := seen[p.key]; {
		case p.key == "":
		case p.nav == "":
			t.Errorf("%s has a shortcut and no place in the navigation, which leads there", p.name)
		case twice:
			t.Errorf("%s and %s have the shortcut %s", before, p.name, p.key)
		}
		seen[p.key] = p.name
	}
}
