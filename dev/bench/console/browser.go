package console

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/dev/bench/stage"
)

// pageSize is what a page of 50 rows may take, packed, in KB.
const pageSize = 12

// view is a page that is looked at.
type view struct {
	name, path string
	table      string  // the id of its list, "" for a page without one
	rows       int     // that the list must have, at least; 0: there must be no list
	within     float64 // ms, for 95 of 100 views

	kilobytes float64  // packed, of the last view
	assets    []string // that it loads
}

// views are the pages with a bound. A search without a hit looks through the whole log.
func views() []*view {
	return []*view{
		{name: "Overview", path: "/console", within: 80},
		{name: "Tokens", path: "/console/tokens", table: "tokens", rows: 50, within: 80},
		{name: "Tasks", path: "/console/tasks", table: "tasks", rows: 50, within: 200},
		{name: "Calls", path: "/console/calls?live=off", table: "calls", rows: 50, within: 600},
		{name: "Calls without a hit", path: "/console/calls?live=off&model=no-such-model", table: "calls", within: 600},
	}
}

// browser keeps its cookies.
type browser struct {
	client *http.Client
	base   string
}

// signIn signs in with the admin key.
func signIn(ctx context.Context, addr string) (*browser, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	b := &browser{
		base: "http://" + addr,
		// What is packed is unpacked by whoever wants to see it: sizes are those of the wire.
		client: &http.Client{Jar: jar, Timeout: stage.AnswerTimeout, Transport: &http.Transport{DisableCompression: true}},
	}
	form := url.Values{"key": {adminKey}, "next": {"/console"}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.base+"/console/sign-in", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", b.base) // as browsers do; without it the console takes no form
	response, err := b.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("sign in: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Request.URL.Path != "/console" {
		return nil, fmt.Errorf("%w: signing in led to %s with %s", stage.ErrBroken, response.Request.URL.Path, response.Status)
	}
	return b, stage.Drain(response.Body)
}

// get reads a document as a browser does, and returns it unpacked with its size on the wire and the time until its end.
// headers are set to 1.
func (b *browser) get(ctx context.Context, path string, headers ...string) (text []byte, packed int, took time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+path, nil)
	if err != nil {
		return nil, 0, 0, err
	}
	request.Header.Set("Accept", "text/html,*/*")
	request.Header.Set("Accept-Encoding", "gzip")
	for _, name := range headers {
		request.Header.Set(name, "1")
	}
	began := time.Now()
	response, err := b.client.Do(request)
	if err != nil {
		return nil, 0, 0, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	took = time.Since(began)
	if err != nil {
		return nil, 0, 0, err
	}
	packed = len(text)
	if response.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			return nil, 0, 0, err
		}
		if text, err = io.ReadAll(unpacked); err != nil {
			return nil, 0, 0, err
		}
	}
	if response.StatusCode != http.StatusOK || response.Request.URL.RequestURI() != path {
		return nil, 0, 0, fmt.Errorf("%w: %s led to %s with %s", stage.ErrBroken, path, response.Request.URL, response.Status)
	}
	return text, packed, took, nil
}

// every is how many seconds a page waits before it asks for its live part again.
var every = regexp.MustCompile(`<live-region[^>]* every="(\d+)"`)

// refresh reads a page as its live part does, and returns how long that waits before it asks again.
func (b *browser) refresh(ctx context.Context, path string) (time.Duration, error) {
	text, _, _, err := b.get(ctx, path, "Console-Refresh")
	if err != nil {
		return 0, err
	}
	match := every.FindSubmatch(text)
	if match == nil {
		return 0, fmt.Errorf("%w: %s has no live part", stage.ErrBroken, path)
	}
	seconds, err := strconv.Atoi(string(match[1]))
	return time.Duration(seconds) * time.Second, err
}

// asset is what a page loads: its scripts, styles and icon.
var asset = regexp.MustCompile(`(?:src|href)="([^"]*assets/[^"]+)"`)

// imported is a module that another one names.
var imported = regexp.MustCompile(`from '\./([^']+)'`)

// scripts is the size of all modules, packed, in KB: those of Try, which loads every one, with what they import.
func (b *browser) scripts(ctx context.Context) (kilobytes float64, err error) {
	try := &view{path: "/console/try"}
	if _, err := try.look(ctx, b); err != nil {
		return 0, err
	}
	left := slices.DeleteFunc(try.assets, func(name string) bool { return path.Ext(name) != ".js" })
	for i := 0; i < len(left); i++ { // it grows
		text, packed, _, err := b.get(ctx, left[i])
		if err != nil {
			return 0, err
		}
		kilobytes += float64(packed) / (1 << 10)
		for _, match := range imported.FindAllSubmatch(text, -1) {
			if name := path.Join(path.Dir(left[i]), string(match[1])); !slices.Contains(left, name) {
				left = append(left, name)
			}
		}
	}
	return kilobytes, nil
}

// look shows the page once and makes sure that it has what it should.
func (v *view) look(ctx context.Context, b *browser) (time.Duration, error) {
	text, packed, took, err := b.get(ctx, v.path)
	if err != nil {
		return 0, err
	}
	_, list, _ := bytes.Cut(text, []byte(`<table id="`+v.table+`"`))
	list, _, _ = bytes.Cut(list, []byte("</table>"))
	_, list, _ = bytes.Cut(list, []byte("<tbody>"))
	rows := bytes.Count(list, []byte("<tr>"))
	if !bytes.Contains(text, []byte("</html>")) || rows < v.rows || rows > 0 && v.rows == 0 {
		return 0, fmt.Errorf("%w: a page of %d bytes has %d rows, want %d", stage.ErrBroken, len(text), rows, v.rows)
	}
	v.kilobytes, v.assets = float64(packed)/(1<<10), nil
	path, _, _ := strings.Cut(v.path, "?")
	page := &url.URL{Path: path}
	for _, match := range asset.FindAllSubmatch(text, -1) {
		link, err := page.Parse(string(match[1])) // links are relative to the page
		if err != nil {
			return 0, fmt.Errorf("%w: %w", stage.ErrBroken, err)
		}
		if !slices.Contains(v.assets, link.Path) {
			v.assets = append(v.assets, link.Path)
		}
	}
	if len(v.assets) == 0 {
		return 0, fmt.Errorf("%w: a page has no styles", stage.ErrBroken)
	}
	return took, nil
}
