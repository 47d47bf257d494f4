package api_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"modelrelay/activities"
	"modelrelay/api"
	"modelrelay/storage/archive"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

const clip = "0123456789"

// finished puts a completed task with two outputs.
func finished(g *gateway) {
	g.archive["a"], g.archive["b"], g.archive["t"] = []byte(clip), []byte("other"), []byte("small")
	g.tasks.put(tasks.Task{
		ID: "video_1", Token: "good", State: workflows.Completed, Progress: 100, CreatedAt: day, Ending: workflows.Ending{
			CompletedAt: day.Add(time.Minute),
			ExpiresAt:   time.Now().Add(time.Hour),
			Outputs: []activities.Output{
				{Object: "a", ContentType: "video/mp4", Size: int64(len(clip)), SHA256: "aa"},
				{
					Object: "b", ContentType: "video/webm", Size: 5, SHA256: "bb",
					Variants: []activities.Variant{{Name: "thumbnail", Object: "t", ContentType: "image/webp", Size: 5, SHA256: "tt"}},
				},
			},
		},
	})
}

func TestContent(t *testing.T) {
	t.Parallel()
	const path = "/v1/videos/video_1/content"
	modified := day.Add(time.Minute).Format(http.TimeFormat)
	for _, test := range []struct {
		name, method, path string
		headers            []string
		status             int
		body               string
		want               map[string]string
	}{
		{"whole", "GET", path, nil, 200, clip, map[string]string{
			"Content-Type": "video/mp4", "Content-Length": "10", "Etag": `"aa"`, "Last-Modified": modified, "Accept-Ranges": "bytes",
			"Cache-Control": "private, no-store", "Content-Security-Policy": "default-src 'none'; sandbox", "X-Content-Type-Options": "nosniff",
		}},
		{"head", "HEAD", path, nil, 200, "", map[string]string{
			"Content-Type": "video/mp4", "Content-Length": "10", "Etag": `"aa"`,
			"Accept-Ranges": "bytes",
		}},
		{
			"the second", "GET", path + "?index=1", nil, 200, "other",
			map[string]string{"Content-Type": "video/webm", "Content-Length": "5", "Etag": `"bb"`},
		},
		{"variant video", "GET", path + "?variant=video", nil, 200, clip, nil},
		{
			"first byte", "GET", path,
			[]string{"Range", "bytes=0-0"},
			206, "0",
			map[string]string{"Content-Range": "bytes 0-0/10", "Content-Length": "1"},
		},
		{"last byte", "GET", path, []string{"Range", "bytes=9-9"}, 206, "9", map[string]string{"Content-Range": "bytes 9-9/10"}},
		{"past the end is cut", "GET", path, []string{"Range", "bytes=8-100"}, 206, "89", map[string]string{"Content-Range": "bytes 8-9/10"}},
		{"open end", "GET", path, []string{"Range", "bytes=4-"}, 206, "456789", map[string]string{"Content-Range": "bytes 4-9/10"}},
		{"suffix", "GET", path, []string{"Range", "bytes=-3"}, 206, "789", map[string]string{"Content-Range": "bytes 7-9/10"}},
		{
			"longer suffix than the whole", "GET", path,
			[]string{"Range", "bytes=-100"},
			206, clip,
			map[string]string{"Content-Range": "bytes 0-9/10"},
		},
		{
			"head of a range", "HEAD", path,
			[]string{"Range", "bytes=2-4"},
			206, "",
			map[string]string{"Content-Range": "bytes 2-4/10", "Content-Length": "3"},
		},
		{
			"after the end", "GET", path,
			[]string{"Range", "bytes=10-"},
			416, "",
			map[string]string{"Content-Range": "bytes */10", "Content-Type": "application/json"},
		},
		{"nonsense", "GET", path, []string{"Range", "bytes=5-2"}, 416, "", map[string]string{"Content-Range": "bytes */10"}},
		{"unit in capitals", "GET", path, []string{"Range", "Bytes=0-1"}, 206, "01", map[string]string{"Content-Range": "bytes 0-1/10"}},
		{
			"more ranges than anybody needs", "GET", path,
			[]string{"Range", "bytes=0-0" + strings.Repeat(",0-0", 16)},
			200, clip,
			map[string]string{"Content-Range": ""},
		},
		{"unknown unit", "GET", path, []string{"Range", "lines=0-1"}, 200, clip, map[string]string{"Content-Range": ""}},
		{"no unit", "GET", path, []string{"Range", "0-1"}, 200, clip, nil},
		{"if-range matches", "GET", path, []string{"Range", "bytes=0-1", "If-Range", `"aa"`}, 206, "01", nil},
		{"if-range does not", "GET", path, []string{"Range", "bytes=0-1", "If-Range", `"zz"`}, 200, clip, nil},
		{"not modified", "GET", path, []string{"If-None-Match", `"aa"`}, 304, "", nil},
		{"not modified since", "GET", path, []string{"If-Modified-Since", modified}, 304, "", nil},
		{"precondition failed", "GET", path, []string{"If-Match", `"zz"`}, 412, "", nil},
		{"no such output", "GET", path + "?index=2", nil, 404, "", nil},
		{
			"thumbnail", "GET", path + "?index=1&variant=thumbnail", nil, 200, "small",
			map[string]string{"Content-Type": "image/webp", "Content-Length": "5", "Etag": `"tt"`},
		},
		{
			"part of a thumbnail", "GET", path + "?index=1&variant=thumbnail",
			[]string{"Range", "bytes=-2"},
			206, "ll",
			map[string]string{"Content-Range": "bytes 3-4/5"},
		},
		{"no thumbnail", "GET", path + "?variant=thumbnail", nil, 404, "", nil},
		{"no spritesheet", "GET", path + "?index=1&variant=spritesheet", nil, 404, "", nil},
		{"unknown variant", "GET", path + "?variant=x", nil, 400, "", nil},
		{"index is a word", "GET", path + "?index=x", nil, 400, "", nil},
		{"index is negative", "GET", path + "?index=-1", nil, 400, "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, nil, nil)
			finished(g)
			rec := g.do(t, request(test.method, test.path, "", test.headers...))
			if rec.Code != test.status {
				t.Fatalf("got %d %s, want %d", rec.Code, rec.Body, test.status)
			}
			if rec.Code < 300 && test.method != "HEAD" && rec.Body.String() != test.body {
				t.Errorf("got body %q, want %q", rec.Body, test.body)
			}
			for name, want := range test.want {
				if got := rec.Header().Get(name); got != want {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
			if rec.Code >= 400 {
				fault(t, rec)
				if rec.Header().Get("Etag") != "" && rec.Code != 416 && rec.Code != 412 {
					t.Error("a fault has the video's etag")
				}
			}
		})
	}
}

func TestSeveralRanges(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	finished(g)
	rec := g.do(t, request("GET", "/v1/videos/video_1/content", "", "Range", "bytes=0-1,8-9"))
	if rec.Code != 206 || !strings.HasPrefix(rec.Header().Get("Content-Type"), "multipart/byteranges") ||
		!strings.Contains(rec.Body.String(), "01") || !strings.Contains(rec.Body.String(), "89") {
		t.Errorf("got %d %v %q", rec.Code, rec.Header(), rec.Body)
	}
}

// TestNoContent: whatever is not there to be read is 404, and an archive that is away is 503.
func TestNoContent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*gateway, *tasks.Task)
		status int
	}{
		"queued":    {func(_ *gateway, task *tasks.Task) { task.State = workflows.Queued }, 404},
		"running":   {func(_ *gateway, task *tasks.Task) { task.State = workflows.InProgress }, 404},
		"failed":    {func(_ *gateway, task *tasks.Task) { task.State = workflows.Failed }, 404},
		"expired":   {func(_ *gateway, task *tasks.Task) { task.ExpiresAt = time.Now().Add(-time.Second) }, 404},
		"swept":     {func(g *gateway, _ *tasks.Task) { delete(g.archive, "a") }, 404},
		"away":      {func(g *gateway, _ *tasks.Task) { g.archive["a"] = nil }, 503},
		"shortened": {func(g *gateway, _ *tasks.Task) { g.archive["a"] = []byte(clip[:4]) }, 500},
		"available": {func(*gateway, *tasks.Task) {}, 200},
	} {
		g := newGateway(t, nil, nil)
		finished(g)
		task := g.tasks.byID["video_1"]
		test.change(g, &task)
		g.tasks.put(task)
		rec := g.do(t, request("GET", "/v1/videos/video_1/content", ""))
		if rec.Code != test.status {
			t.Errorf("%s: got %d %s, want %d", name, rec.Code, rec.Body, test.status)
		}
		if test.status == 200 {
			continue
		}
		fault(t, rec)
		if rec.Header().Get("Etag") != "" || rec.Header().Get("Content-Length") != strconv.Itoa(rec.Body.Len()) ||
			rec.Header().Get("Cache-Control") != "private, no-store" {
			t.Errorf("%s: a fault has the video's header %v", name, rec.Header())
		}
	}
}

// shortened is an archive whose objects end early.
type shortened struct{}

func (shortened) Open(context.Context, string) (*archive.Reader, error) {
	return archive.NewReader(archive.Object{Size: int64(len(clip))}, func(offset, _ int64) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(clip[offset:max(offset, 4)])), nil
	}), nil
}

// TestContentThatBreaksOff: an object that ends early cuts the connection.
func TestContentThatBreaksOff(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, func(_ *gateway, o *api.Options) { o.Archive = shortened{} })
	finished(g)
	defer func() {
		if recover() != http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
			t.Error("the connection was not cut")
		}
	}()
	g.do(t, request("GET", "/v1/videos/video_1/content", ""))
}

// TestContentIsNoPage: whatever a vendor called its output, a browser that opens it finds a video or a picture.
func TestContentIsNoPage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ called, video, picture string }{
		{"video/webm", "video/webm", "image/jpeg"},
		{"Video/QuickTime; codecs=x", "video/quicktime", "image/jpeg"},
		{"image/png", "video/mp4", "image/png"},
		{"image/svg+xml", "video/mp4", "image/jpeg"},
		{"text/html", "video/mp4", "image/jpeg"},
		{"video/mp4, text/html", "video/mp4", "image/jpeg"},
		{"", "video/mp4", "image/jpeg"},
	} {
		g := newGateway(t, nil, nil)
		finished(g)
		task := g.tasks.byID["video_1"]
		task.Outputs[1].ContentType, task.Outputs[1].Variants[0].ContentType = test.called, test.called
		g.tasks.put(task)
		for path, want := range map[string]string{"": test.video, "&variant=thumbnail": test.picture} {
			rec := g.do(t, request("GET", "/v1/videos/video_1/content?index=1"+path, ""))
			header := rec.Header()
			if rec.Code != 200 || header.Get("Content-Type") != want || header.Get("X-Content-Type-Options") != "nosniff" ||
				header.Get("Content-Security-Policy") != "default-src 'none'; sandbox" {
				t.Errorf("%q%s: got %d with %v, want %s", test.called, path, rec.Code, header, want)
			}
		}
	}
}
