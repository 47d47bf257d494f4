package fakerunway

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"modelrelay/dev/upstream/fake"
)

const (
	uploadScheme = "runway://"
	// uploadLife is how long the address of an upload takes its file.
	uploadLife = 15 * time.Minute
	// mostUploads bounds the files that are kept; they end with the process.
	mostUploads = 100
)

// uploads are the files that creates may name.
type uploads struct {
	mu      sync.Mutex
	digests map[string]fake.Media
}

func (u *uploads) find(uri string) (fake.Media, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	m, ok := u.digests[strings.TrimPrefix(uri, uploadScheme)]
	return m, ok
}

func (u *uploads) keep(id string, m fake.Media) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.digests) >= mostUploads {
		return false
	}
	u.digests[id] = m
	return true
}

func parseUpload(x *fake.Exchange) *fake.Problem {
	var q struct {
		Filename string `json:"filename"`
		Type     string `json:"type"`
	}
	p := x.DecodeKnown(&q)
	switch {
	case p != nil:
		return p
	case !strings.Contains(q.Filename, "."):
		return fake.Invalidf("filename", "The filename needs an extension.")
	case q.Type != "ephemeral":
		return fake.Invalidf("type", "Invalid enum value.")
	}
	return nil
}

// answerUpload hands out an address that takes one file without a key.
func (s *api) answerUpload(x *fake.Exchange) {
	id := fake.RandomID(32)
	x.Accept()
	x.JSON(http.StatusOK, map[string]any{
		"uploadUrl": s.Link(x, "/runway/uploads/"+id, uploadLife), "fields": map[string]string{"key": id}, "runwayUri": uploadScheme + id,
	})
}

// answerUploaded takes the fields that were handed out, and the file behind them.
func (s *api) answerUploaded(x *fake.Exchange) {
	id := x.HTTP.PathValue("id")
	f, p := fake.ParseForm(x)
	if p != nil {
		fake.RefuseLink(x, *p)
		return
	}
	file := f.File("file")
	if file == nil || f.Value("key") != id || !s.uploads.keep(id,
		fake.Media{Type: file.ContentType, Data: append([]byte(nil), file.Data...)}) {
		fake.RefuseLink(x, *fake.Invalidf("", "Bucket POST must contain the fields that were signed, and a file."))
		return
	}
	x.Accept()
	x.WriteHeader(http.StatusNoContent)
}
