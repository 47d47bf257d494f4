package docs_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-chi/chi/v5"

	"modelrelay/api/docs"
)

// md is the ending of the pages.
const md = ".md"

// TestPages: a page as HTML and as Markdown, with the gateway's own address; the address of a request cannot inject markup.
func TestPages(t *testing.T) {
	t.Parallel()
	manual := fstest.MapFS{
		"index" + md: {Data: []byte("# Manual\n\n## Use\n\n- [Python](use/python" + md + "): SDKs\n")},
		"use/python" + md: {Data: []byte("# Python\n\nFor a developer. Ask " + docs.Placeholder + "/v1, and read [Node](node" + md +
			"#a-tool).\n\n| a | b |\n|---|---|\n| c | d |\n")},
		"use/node" + md: {Data: []byte("# Node\n")},
	}
	mux := chi.NewMux()
	docs.Routes(mux, manual, func(r *http.Request) string { return "http://" + r.Host })
	for _, c := range []struct {
		path, host, kind string
		code             int
		has, lacks       string
	}{
		{"/docs/", "gw.example", "text/html; charset=utf-8", 200, `<a href="use/python">Python</a>`, ".md)"},
		{"/docs/use/python", "gw.example", "text/html; charset=utf-8", 200, `href="node#a-tool"`, docs.Placeholder},
		{"/docs/use/python", "gw.example", "text/html; charset=utf-8", 200, "<td>c</td>", docs.Placeholder},
		{"/docs/use/python", "gw.example", "text/html; charset=utf-8", 200, `aria-current="page">Python`, docs.Placeholder},
		{"/docs/use/python", `"><script>`, "text/html; charset=utf-8", 200, "&lt;script&gt;/v1", "<script>"},
		{"/docs/use/python" + md, "gw.example", "text/markdown; charset=utf-8", 200, "http://gw.example/v1", docs.Placeholder},
		{"/docs/use/none", "gw.example", "text/plain; charset=utf-8", 404, "no page none" + md, ""},
		{"/docs/../secret" + md, "gw.example", "text/plain; charset=utf-8", 404, "no page secret" + md, ""},
		{"/docs/api", "gw.example", "text/html; charset=utf-8", 200, "rapi-doc", ""},
		{"/llms.txt", "gw.example", "text/plain; charset=utf-8", 200, "(http://gw.example/docs/use/python" + md + ")", docs.Placeholder},
	} {
		r := httptest.NewRequest(http.MethodGet, c.path, nil)
		r.Host = c.host
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		body := w.Body.String()
		if w.Code != c.code || w.Header().Get("Content-Type") != c.kind || !strings.Contains(body, c.has) || c.lacks != "" &&
			strings.Contains(body, c.lacks) {
			t.Errorf("%s of %s: got %d %s\n%s", c.path, c.host, w.Code, w.Header().Get("Content-Type"), body)
		}
	}
}
