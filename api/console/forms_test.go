package console

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// countingBody is a body of zeros that says how much of it was read.
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

// TestFormsAreBounded: who may do little is not let send much, since a form is held in memory. Limits are of the role, and
// asked before the first byte is read.
func TestFormsAreBounded(t *testing.T) {
	t.Parallel()
	const sent = 16 << 20
	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"data":[]}`) })
	for _, test := range []struct {
		who, path string
		most      int
	}{
		{"", "/console/sign-in", maxEntry},
		{"", "/console/look", maxEntry},
		{"app", "/console/models", 0}, // the form of price lists is the operators'
		{"vera", "/console/models", 0},
		{"app", "/console/tokens", 0},
		{"app", "/console/tasks/x", maxForm + formMargin},
		{"anna", "/console/tokens", maxForm + formMargin},
		{"anna", "/console/models", mostPrices + formMargin},
	} {
		b := &browser{h: h}
		if test.who != "" {
			b = h.as(t, test.who)
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
				t.Errorf("%q at %s as %s: %d bytes were read, want %d at most", test.who, test.path, kind, body.read, test.most)
			}
		}
	}
}

// Attempts to sign in fill the audit log only as long as they are few: a stranger, or a holder who signs in without end, must
// not push out what operators did.
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
	if got := len(h.noted); got != mostWrong {
		t.Errorf("%d attempts were noted, want %d", got, mostWrong)
	}
	code, _ := h.sessions.Offer(t.Context(), "operator", "anna", time.Minute)
	if rec := b.post("/console/enter/"+code, nil); rec.Code != http.StatusSeeOther {
		t.Errorf("a good link after that: got %d, want 303", rec.Code)
	}
	h.sessions.full = true
	before := len(h.noted)
	if rec := (&browser{h: h}).post("/console/sign-in", url.Values{"key": {"app"}}); rec.Code != http.StatusTooManyRequests || len(h.noted) != before {
		t.Errorf("one sign-in too many: got %d with %d notes, want 429 without", rec.Code, len(h.noted)-before)
	}
}
