package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"code.dny.dev/ssrf"

	"modelrelay/providers"
)

// Results reads the results of upstreams. It is safe for concurrent use.
type Results struct {
	// near is for a channel's own origin, far for all others.
	near, far http.RoundTripper
	agent     string
}

// NewResults returns a Results over the process's client.
func NewResults(client *http.Client) *Results {
	return &Results{near: client.Transport, far: guarded(client.Transport), agent: Agent(client)}
}

// Link creates the request for a result at an upstream's link, absolute or relative to the channel's base URL. It reports whether
// the link is at the channel's own origin; the credential may be sent only there. Schemes other than http and https are refused.
func (r *Results) Link(ctx context.Context, channel providers.Channel, link string) (get *http.Request, own bool, err error) {
	base, err := url.Parse(channel.BaseURL)
	if err != nil {
		return nil, false, BrokenAnswer("base address", err)
	}
	at, err := base.Parse(link)
	if err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "" {
		return nil, false, BrokenAnswer("result link", nil) // the error would contain the link
	}
	get, err = http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, false, BrokenAnswer("result link", nil)
	}
	get.Header.Set("User-Agent", r.agent)
	return get, sameOrigin(base, at), nil
}

// Open sends the request for a video or a picture. Beyond the channel's own origin Open dials only public addresses at every hop, unless
// the channel allows others, and failures there do not count against the channel.
//
// The first bytes decide the type. Neither a video nor a picture is a *Fault. The caller closes Video.Body.
func (r *Results) Open(channel providers.Channel, get *http.Request) (providers.Video, error) {
	client, err := r.client(channel)
	if err != nil {
		return providers.Video{}, err
	}
	resp, err := Send(client, get)
	if err != nil {
		base, _ := url.Parse(channel.BaseURL) // the client has parsed it
		return providers.Video{}, resultFault(err, sameOrigin(base, get.URL))
	}
	head := make([]byte, headLength)
	n, err := io.ReadFull(resp.Body, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		_ = resp.Body.Close()
		return providers.Video{}, brokenOff(get.Context(), err)
	}
	head = head[:n]
	kind := resultType(head)
	if kind == "" {
		_ = resp.Body.Close()
		return providers.Video{}, BrokenAnswer("neither a video nor a picture but content of type "+strconv.Quote(MediaType(resp.Header)), nil)
	}
	body := opened{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
	return providers.Video{Body: body, Length: resp.ContentLength, ContentType: kind}, nil
}

func (r *Results) client(channel providers.Channel) (*http.Client, error) {
	base, err := url.Parse(channel.BaseURL)
	if err != nil {
		return nil, BrokenAnswer("base address", err)
	}
	client := &http.Client{CheckRedirect: redirect, Transport: r.near}
	if !channel.AllowPrivateResults {
		client.Transport = border{own: base, near: r.near, far: r.far}
	}
	return client, nil
}

// opened is a body of which a part has been read.
type opened struct {
	io.Reader
	io.Closer
}

// resultFault corrects the fault of a request for a result that may have left the channel's own origin.
func resultFault(err error, own bool) error {
	var fault *providers.Fault
	switch {
	case !errors.As(err, &fault):
	case errors.Is(err, ssrf.ErrProhibitedIP):
		fault.Message, fault.Blame = "The upstream's link to the result leads to a private, loopback or otherwise special network.",
			providers.BlameNone
	case !own:
		fault.Blame = providers.BlameNone
	}
	return err
}

// border is the transport of requests that may leave a channel's own origin: near for that origin, far for others, at each hop.
type border struct {
	own       *url.URL
	near, far http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b border) RoundTrip(req *http.Request) (*http.Response, error) {
	if sameOrigin(b.own, req.URL) {
		return b.near.RoundTrip(req)
	}
	return b.far.RoundTrip(req)
}

// ebml begins WebM and Matroska files.
const ebml = "\x1a\x45\xdf\xa3"

// headLength is how many bytes are read to detect the type of a result.
const headLength = 64

// resultType returns the media type of a result by its first bytes, "" if it is neither a video nor a picture.
func resultType(head []byte) string {
	switch {
	case len(head) >= 12 && string(head[4:8]) == "ftyp":
		return boxType(string(head[8:12]))
	case bytes.HasPrefix(head, []byte(ebml)) && bytes.Contains(head, []byte("matroska")):
		return "video/x-matroska"
	}
	for _, known := range []struct {
		at          int
		magic, kind string
	}{
		{0, ebml, "video/webm"},
		{4, "moov", "video/quicktime"},
		{4, "mdat", "video/quicktime"},
		{4, "wide", "video/quicktime"},
		{8, "AVI ", "video/x-msvideo"},
		{0, "\x00\x00\x01\xba", "video/mpeg"},
		{0, "OggS", "video/ogg"},
		{0, "\x89PNG\r\n\x1a\n", "image/png"},
		{0, "\xff\xd8\xff", "image/jpeg"},
		{8, "WEBP", "image/webp"},
		{0, "GIF8", "image/gif"},
	} {
		if len(head) > known.at && strings.HasPrefix(string(head[known.at:]), known.magic) {
			return known.kind
		}
	}
	return ""
}

// boxType returns the media type of an ISO base media file by its major brand (ISO/IEC 14496-12).
func boxType(brand string) string {
	switch brand {
	case "qt  ":
		return "video/quicktime"
	case "avif", "avis":
		return "image/avif"
	case "heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1": // pictures that browsers do not show
		return ""
	case "M4A ", "M4B ", "M4P ", "F4A ", "F4B ": // only sound
		return ""
	}
	return "video/mp4"
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch port := u.Port(); {
	case port != "":
		return port
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
