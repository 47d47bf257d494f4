package console

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
