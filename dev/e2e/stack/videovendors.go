package stack

import (
	"net/http"
	"strings"
)

// VideoVendor is a channel to the fake of a vendor that makes videos, by a row of the fakes' table. The channel and the model's public
// name have its name.
type VideoVendor struct {
	Name, Vendor string
	Path         string // of the channel's address, below that of the fakes
	Key          string
	VideoModel
}

// VideoModel is a model of the vendor as the fakes' table has it: dev/upstream/vendors.go.
type VideoModel struct {
	Model   string
	Seconds int
	Size    string
	// TextOnly: the model makes no video from an image. Named: its job has the digest of the text that named the image, not of the bytes.
	TextOnly bool `json:"text_only"`
	Named    bool
	// Repeats: a job whose answer was lost is found by the same create again, under its idempotency key.
	Repeats bool
	// Content is the operation whose answer holds the result; "" for video.content, the answer of a link.
	Content string
	// Unknown is a model that a create is refused for, Late of a vendor that fails the job instead.
	Unknown string
}

// Late is the Unknown of a vendor that accepts a create of a model that it does not have.
const Late = "-"

// VideoVendors returns all fakes that make videos.
func (u *Upstreams) VideoVendors() []VideoVendor {
	u.t.Helper()
	var table struct {
		Channels []struct {
			Name, Vendor, Path string
			Keys               []string
			Video              *VideoModel
		}
	}
	u.Control.Do(http.MethodGet, "/channels", nil, &table)
	var vendors []VideoVendor
	for _, c := range table.Channels {
		if c.Video == nil {
			continue
		}
		key := strings.ReplaceAll(c.Keys[0], "one", c.Name)
		if key == account {
			key = u.ServiceAccount()
		}
		vendors = append(vendors, VideoVendor{c.Name, c.Vendor, c.Path, key, *c.Video})
	}
	return vendors
}

// account is the key in the table of a channel whose key is a service account's.
const account = "account"
