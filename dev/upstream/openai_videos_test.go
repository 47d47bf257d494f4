package upstream_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"mime/multipart"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"modelrelay/dev/upstream"
)

// createVideo makes a job and returns its id.
func (f *fake) createVideo(t *testing.T, body string) string {
	t.Helper()
	a := f.do(t, "POST", "/openai/v1/videos", body)
	if a.status != 200 {
		t.Fatalf("create: %d %s", a.status, a.body)
	}
	return textAt(t, a.json(t), "id")
}

func TestVideoLife(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	a := f.do(t, "POST", "/openai/v1/videos", `{"model":"sora-2-manual","prompt":"a cat","seconds":"8","size":"1280x720"}`)
	v := a.json(t)
	wants(t, v, map[string]any{
		"object": "video", "model": "sora-2-manual", "status": "queued", "progress": 0, "seconds": "8", "size": "1280x720", "prompt": "a cat",
		"completed_at": nil, "expires_at": nil, "error": nil, "remixed_from_video_id": nil,
	})
	if len(v) != 13 {
		t.Errorf("keys: got %d, want 13: %s", len(v), a.body)
	}
	id := textAt(t, v, "id")
	path := "/openai/v1/videos/" + id

	if got := f.do(t, "GET", path+"/content", ""); got.status != 404 {
		t.Errorf("content of a queued job: got %d, want 404", got.status)
	}
	if got := f.do(t, "DELETE", path, ""); got.status != 400 {
		t.Errorf("delete of a queued job: got %d, want 400", got.status)
	}
	f.control(t, "POST", "jobs/"+id, `{"state":"in_progress","progress":42}`)
	wants(t, f.do(t, "GET", path, "").json(t), map[string]any{"status": "in_progress", "progress": 42, "completed_at": nil})
	f.control(t, "POST", "jobs/"+id, `{"state":"completed"}`)
	v = f.do(t, "GET", path, "").json(t)
	wants(t, v, map[string]any{"status": "completed", "progress": 100})
	if v["completed_at"] == nil || v["expires_at"] == nil {
		t.Errorf("a completed job has no times: %v", v)
	}

	content := f.do(t, "GET", path+"/content", "")
	if content.status != 200 || content.header.Get("Content-Type") != "video/mp4" {
		t.Fatalf("content: %d %v", content.status, content.header)
	}
	checkBoxes(t, content.body)
	job := f.control(t, "GET", "jobs/"+id, "")
	wants(t, job, map[string]any{"sha256": digest(content.body), "length": len(content.body), "polls": 2, "downloads": 1, "submissions": 1})
	part := f.do(t, "GET", path+"/content", "", "Range", "bytes=10-19")
	if part.status != 206 || !bytes.Equal(part.body, content.body[10:20]) {
		t.Errorf("range: got %d %q", part.status, part.body)
	}
	if got := f.do(t, "GET", path+"/content?variant=thumbnail", ""); !bytes.HasPrefix(got.body, []byte("RIFF")) ||
		got.header.Get("Content-Type") != "image/webp" {
		t.Errorf("thumbnail: got %v", got.header)
	}
	if got := f.do(t, "GET", path+"/content?variant=spritesheet", ""); !bytes.HasPrefix(got.body, []byte{0xFF, 0xD8}) {
		t.Errorf("spritesheet is no JPEG")
	}
	if got := f.do(t, "GET", path+"/content?variant=poster", ""); got.status != 400 {
		t.Errorf("unknown variant: got %d, want 400", got.status)
	}

	remix := f.do(t, "POST", path+"/remix", `{"prompt":"a dog"}`).json(t)
	wants(t, remix, map[string]any{"remixed_from_video_id": id, "prompt": "a dog", "size": "1280x720", "status": "queued"})

	list := f.do(t, "GET", "/openai/v1/videos?limit=1", "").json(t)
	wants(t, list, map[string]any{"object": "list", "data.0.id": remix["id"], "has_more": true})
	list = f.do(t, "GET", "/openai/v1/videos?after="+textAt(t, remix, "id"), "").json(t)
	wants(t, list, map[string]any{"first_id": id, "last_id": id, "has_more": false})
	list = f.do(t, "GET", "/openai/v1/videos", "", "Authorization", "Bearer sk-upstream-other").json(t)
	wants(t, list, map[string]any{"first_id": nil, "has_more": false})

	wants(t, f.do(t, "DELETE", path, "").json(t), map[string]any{"id": id, "object": "video.deleted", "deleted": true})
	if got := f.do(t, "GET", path, ""); got.status != 404 {
		t.Errorf("after delete: got %d, want 404", got.status)
	}
	wants(t, f.control(t, "GET", "stats", ""), map[string]any{"videos.created": 2, "videos.submissions": 2})
}

func TestVideoByTheClock(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{VideoMin: 300 * time.Millisecond, VideoMax: 400 * time.Millisecond})
	id := f.createVideo(t, `{"model":"compatible","prompt":"x"}`)
	failing := f.createVideo(t, `{"model":"compatible-fail","prompt":"x"}`)
	last, seen := -1.0, []string{}
	eventually(t, func() bool {
		v := f.do(t, "GET", "/openai/v1/videos/"+id, "").json(t)
		progress, _ := v["progress"].(float64)
		status := textAt(t, v, "status")
		if progress < last || (progress == 100) != (status == "completed") {
			t.Fatalf("progress %v after %v, status %s", progress, last, status)
		}
		last = progress
		if !slices.Contains(seen, status) {
			seen = append(seen, status)
		}
		return status == "completed"
	})
	if got := strings.Join(seen, " "); got != "queued in_progress completed" {
		t.Errorf("states: got %s", got)
	}
	eventually(t, func() bool {
		v := f.do(t, "GET", "/openai/v1/videos/"+failing, "").json(t)
		if v["status"] == "failed" {
			wants(t, v, map[string]any{"error.code": "internal_error", "completed_at": nil})
		}
		return v["status"] == "failed"
	})
}

func TestVideoUpload(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	image := bytes.Repeat([]byte("\xFF\xD8\x00"), 1000)
	upload := func(contentType string) answer {
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		for name, value := range map[string]string{"model": "sora-2-manual", "prompt": "with a picture", "seconds": "12"} {
			if err := w.WriteField(name, value); err != nil {
				t.Fatal(err)
			}
		}
		part, err := w.CreatePart(textproto.MIMEHeader{
			"Content-Disposition": {`form-data; name="input_reference"; filename="ä.jpg"`}, "Content-Type": {contentType},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write(image); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return f.do(t, "POST", "/openai/v1/videos", body.String(), "Content-Type", w.FormDataContentType())
	}
	a := upload("image/jpeg")
	wants(t, a.json(t), map[string]any{"prompt": "with a picture", "seconds": "12", "size": "720x1280"})
	wants(t, f.control(t, "GET", "jobs/"+textAt(t, a.json(t), "id"), ""),
		map[string]any{"input_sha256": digest(image), "input_bytes": len(image)})
	if got := upload("text/plain"); got.status != 400 {
		t.Errorf("a picture that is none: got %d, want 400", got.status)
	}
}

func TestJobsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	first := start(t, upstream.Options{Data: data})
	id := first.createVideo(t, `{"model":"sora-2-manual","prompt":"kept"}`)
	gone := first.createVideo(t, `{"model":"sora-2-manual","prompt":"forgotten"}`)
	first.control(t, "POST", "jobs/"+gone, `{"forgotten":true}`)
	want := first.control(t, "GET", "jobs/"+id, "")["sha256"]

	// What is on disk while the process runs is what a SIGKILL leaves, but for a line it tore.
	lines, err := os.ReadFile(filepath.Join(data, "jobs.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	killed := t.TempDir()
	if err := os.WriteFile(filepath.Join(killed, "jobs.jsonl"), append(lines, `{"id":"video_torn","ven`...), 0o600); err != nil {
		t.Fatal(err)
	}
	second := start(t, upstream.Options{Data: killed})
	wants(t, second.control(t, "GET", "stats", ""), map[string]any{"videos.created": 2, "videos.submissions": 2})
	if got := second.do(t, "GET", "/openai/v1/videos/"+gone, ""); got.status != 404 {
		t.Errorf("forgotten job: got %d, want 404", got.status)
	}
	second.control(t, "POST", "jobs/"+id, `{"state":"completed"}`)
	content := second.do(t, "GET", "/openai/v1/videos/"+id+"/content", "")
	if got := digest(content.body); got != want {
		t.Errorf("content after the restart: got %s, want %v", got, want)
	}
	second.createVideo(t, `{"model":"sora-2-manual","prompt":"third"}`)
	second.stop()
	third := start(t, upstream.Options{Data: killed})
	wants(t, third.control(t, "GET", "stats", ""), map[string]any{"videos.created": 3})
	wants(t, third.control(t, "GET", "jobs/"+id, ""), map[string]any{"state": "completed"})
	third.control(t, "POST", "reset", "")
	wants(t, third.control(t, "GET", "stats", ""), map[string]any{"videos.created": 0})
	third.createVideo(t, `{"model":"sora-2-manual","prompt":"afterwards"}`)
	third.stop()
	wants(t, start(t, upstream.Options{Data: killed}).control(t, "GET", "stats", ""), map[string]any{"videos.created": 1})
}

func TestLargeContent(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	natural := 0
	for i, size := range []int{0, 1 << 10, 1, 9, 40, 1 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			id := f.createVideo(t, `{"model":"sora-2-manual","prompt":"large"}`)
			want := size
			if i > 0 && size < 100 {
				want = natural + size // around the size of a box's head
			}
			if i > 0 {
				f.control(t, "POST", "jobs/"+id, fmt.Sprintf(`{"size":%d}`, want))
			}
			f.control(t, "POST", "jobs/"+id, `{"state":"completed"}`)
			body := f.do(t, "GET", "/openai/v1/videos/"+id+"/content", "").body
			if i == 0 {
				natural = len(body)
			}
			if len(body) != max(want, natural) {
				t.Errorf("length: got %d, want %d", len(body), max(want, natural))
			}
			checkBoxes(t, body)
			wants(t, f.control(t, "GET", "jobs/"+id, ""), map[string]any{"sha256": digest(body)})
		})
	}
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// checkBoxes walks the top-level boxes of an MP4 file (ISO/IEC 14496-12, 4.2): they must fill it exactly, with the
// index before the media data.
func checkBoxes(t *testing.T, file []byte) {
	t.Helper()
	var kinds []string
	for at := 0; at < len(file); {
		if len(file)-at < 8 {
			t.Fatalf("%d bytes after the last box", len(file)-at)
		}
		size := int(binary.BigEndian.Uint32(file[at:]))
		if size == 1 {
			size = int(binary.BigEndian.Uint64(file[at+8:]))
		}
		kinds = append(kinds, string(file[at+4:at+8]))
		if size < 8 || size > len(file)-at {
			t.Fatalf("box %s of %d bytes at %d of %d", kinds[len(kinds)-1], size, at, len(file))
		}
		at += size
	}
	got := strings.Join(kinds, " ")
	if !strings.HasPrefix(got, "ftyp moov free mdat free") {
		t.Errorf("boxes: got %s", got)
	}
}
