package api_test

import (
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// TestExtraIsBounded: fields that the contract does not name are refused when they are long together or nested deeply,
// in every format, and so is metadata.
func TestExtraIsBounded(t *testing.T) {
	t.Parallel()
	const half = 600 << 10
	long := `"x":"` + strings.Repeat("a", half) + `","y":[` + strings.Repeat("0,", half/2) + `0]`
	deep := strings.Repeat(`[{"a":`, 51) + "0" + strings.Repeat("}]", 51)
	flat := `"[[[[\"{{` + strings.Repeat("[{", 200) + `"`
	formOf := func(parts ...part) *http.Request {
		kind, body := form(t, append([]part{{"model", "", "", "sora-2"}, {"prompt", "", "", "p"}}, parts...)...)
		return request("POST", "/v1/videos", body, "Content-Type", kind)
	}
	const vendorC = "/vendorC/?Action=CVSync2AsyncSubmitTask&Version=2022-08-31"
	for name, test := range map[string]struct {
		req    *http.Request
		status int
	}{
		"long":              {request("POST", "/v1/videos", `{"model":"sora-2","prompt":"p",`+long+`}`), 400},
		"long, generic":     {request("POST", "/v1/video/generations", `{"model":"sora-2","prompt":"p",`+long+`}`), 400},
		"long, vendor C":    {request("POST", vendorC, `{"req_key":"sora-2","prompt":"p",`+long+`}`), 400},
		"long, form":        {formOf(part{"x", "", "", strings.Repeat("a", half)}, part{"y", "", "", strings.Repeat("a", half)}), 400},
		"half as long":      {request("POST", "/v1/videos", `{"model":"sora-2","prompt":"p","x":"`+strings.Repeat("a", half)+`"}`), 200},
		"deep":              {request("POST", "/v1/videos", `{"model":"sora-2","prompt":"p","x":`+deep+`}`), 400},
		"deep, vendor C":    {request("POST", vendorC, `{"req_key":"sora-2","prompt":"p","x":`+deep+`}`), 400},
		"deep metadata":     {request("POST", "/v1/videos", `{"model":"sora-2","prompt":"p","metadata":{"x":`+deep+`}}`), 400},
		"deep in a form":    {formOf(part{"metadata", "", "", `{"x":` + deep + `}`}), 400},
		"brackets in texts": {request("POST", "/v1/videos", `{"model":"sora-2","prompt":"p","x":`+flat+`,"metadata":{"x":`+flat+`}}`), 200},
	} {
		g := newGateway(t, nil, nil)
		rec := g.do(t, test.req)
		if rec.Code != test.status || test.status == 400 && len(g.tasks.creates) != 0 {
			t.Errorf("%s: got %d %.200s, want %d", name, rec.Code, rec.Body, test.status)
		}
	}
}

// TestExtraCostsLittle: a create of 20 MB of unknown fields is refused for little more than its own bytes. Not parallel: it
// reads what the whole process allocates.
func TestExtraCostsLittle(t *testing.T) { //nolint:paralleltest // see above
	g := newGateway(t, nil, nil)
	body := `{"model":"sora-2","prompt":"p","x":[` + strings.Repeat(`{"a":[]},`, 20<<20/9) + `0]}`
	req := request("POST", "/v1/videos", body)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	rec := g.do(t, req)
	runtime.ReadMemStats(&after)
	if rec.Code != http.StatusBadRequest {
		t.Fatalf("got %d %.200s", rec.Code, rec.Body)
	}
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(len(body))*2; got > most {
		t.Errorf("allocated %d bytes for a create of %d, want at most %d", got, len(body), most)
	}
}
