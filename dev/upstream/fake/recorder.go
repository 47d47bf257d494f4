package fake

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

const (
	recordedRequests = 128      // kept per vendor and operation
	recordedHead     = 64 << 10 // bytes kept of each body
)

// record is one request as it reached the vendor.
type record struct {
	sequence  int64
	at        time.Time
	vendor    string
	operation string
	key       string
	model     string
	method    string
	url       *url.URL
	header    http.Header
	digest    [sha256.Size]byte
	size      int
	head      []byte
}

// recordView is a record as the control interface shows it.
type recordView struct {
	Sequence  int64       `json:"sequence"`
	At        time.Time   `json:"at"`
	Vendor    string      `json:"vendor"`
	Operation string      `json:"operation"`
	Key       string      `json:"key"`
	Model     string      `json:"model"`
	Method    string      `json:"method"`
	Target    string      `json:"target"` // path and query
	Header    http.Header `json:"header"`
	SHA256    string      `json:"sha256"`
	Size      int         `json:"size"`
	Head      []byte      `json:"head"` // base64 in JSON
}

// recorder keeps the last requests of each operation. Slots reuse their memory.
type recorder struct {
	mu       sync.Mutex
	sequence int64
	rings    map[[2]string]*ring
}

// ring holds the last requests of one operation; next is the slot written next.
type ring struct {
	slots []record
	next  int
}

func newRecorder() *recorder { return &recorder{rings: map[[2]string]*ring{}} }

func (c *recorder) add(x *Exchange) {
	digest := sha256.Sum256(x.Body)
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	id := [2]string{x.Operation.Vendor.Name, x.Operation.Name}
	kept := c.rings[id]
	if kept == nil {
		kept = new(ring)
		c.rings[id] = kept
	}
	if len(kept.slots) < recordedRequests {
		kept.slots = append(kept.slots, record{})
	}
	slot := &kept.slots[kept.next]
	kept.next = (kept.next + 1) % recordedRequests
	c.sequence++
	head := append(slot.head[:0], x.Body[:min(len(x.Body), recordedHead)]...)
	*slot = record{
		sequence: c.sequence, at: now, vendor: id[0], operation: id[1], key: x.Key, model: x.Model,
		method: x.HTTP.Method, url: x.HTTP.URL, header: x.HTTP.Header, digest: digest, size: len(x.Body), head: head,
	}
}

// last returns up to n of the selected requests, oldest first.
func (c *recorder) last(f tallyFilter, n int) []recordView {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []*record
	for _, kept := range c.rings {
		for i := range kept.slots {
			r := &kept.slots[i]
			if f.matches(tallyKey{r.vendor, r.operation, r.key, r.model}) {
				found = append(found, r)
			}
		}
	}
	slices.SortFunc(found, func(a, b *record) int { return cmp.Compare(a.sequence, b.sequence) })
	if n > 0 && len(found) > n {
		found = found[len(found)-n:]
	}
	views := make([]recordView, 0, len(found))
	for _, r := range found {
		views = append(views, recordView{
			Sequence: r.sequence, At: r.at, Vendor: r.vendor, Operation: r.operation, Key: r.key, Model: r.model,
			Method: r.method, Target: r.url.RequestURI(), Header: r.header.Clone(), SHA256: hex.EncodeToString(r.digest[:]), Size: r.size,
			Head: append([]byte(nil), r.head...),
		})
	}
	return views
}

func (c *recorder) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rings = map[[2]string]*ring{}
}
