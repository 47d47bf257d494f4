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

// Results reads what upstreams made. Safe for concurrent use.
type Results struct {
	// near leads to a channel's own origin, far anywhere else.
	near, far http.RoundTripper
	agent     string
}

// NewResults makes a Results over the process's client.
func NewResults(client *http.Client) *Results {
	return &Results{near: client.Transport, far: guarded(client.Transport), agent: Agent(client)}
}

// Link makes the request for a result that an upstream names by a link, absolute or relative to the channel's address,
// and tells whether it lies at the channel's own origin: the adapter's credential may go there and nowhere else. Schemes
// other than http and https are refused.
func (r *Results) Link(ctx context.Context, channel providers.Channel, link string) (get *http.Request, own bool, err error) {
	base, err := url.Parse(channel.BaseURL)
	if err != nil {
		return nil, false, BrokenAnswer("base address", err)
	}
	at, err := base.Parse(link)
	if err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "" {
		return nil, false, BrokenAnswer("result link", nil) // the error would repeat the link
	}
	get, err = http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, false, BrokenAnswer("result link", nil)
	}
	get.Header.Set("User-Agent", r.agent)
	return get, sameOrigin(base, at), nil
}

// Open sends the request for a video or a picture. An upstream's link may hold what a client wrote, and a redirect leads
// anywhere: beyond the channel's own origin only public addresses are dialled, hop by hop, unless the channel allows others,
// and what goes wrong there does not speak against the channel.
//
// The type is read from the first bytes, whatever the upstream says. What is neither a video nor a picture is a *Fault: some
// upstreams say with a 200 that a result is gone. The caller closes Video.Body.
func (r *Results) Open(channel providers.Channel, get *http.Request) (providers.Video, error) {
	client, err := r.client(channel)
	if err != nil {
		return providers.Video{}, err
	}
	resp, err := Send(client, get)
	if err != nil {
		base, _ := url.Parse(channel.BaseURL) // the client has read it
		return providers.Video{}, afar(err, sameOrigin(base, get.URL))
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

// client goes where the upstream of a channel leads.
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

// opened is a body some of which has been read.
type opened struct {
	io.Reader
	io.Closer
}

// afar is the error of a request for a result, which may have gone to a place that is not the channel's own.
func afar(err error, own bool) error {
	var fault *providers.Fault
	switch {
	case !errors.As(err, &fault):
	case errors.Is(err, ssrf.ErrProhibitedIP):
		fault.Message, fault.Blame = "The upstream's link to the result leads to a private, loopback or otherwise special network.", providers.BlameNone
	case !own:
		fault.Blame = providers.BlameNone
	}
	return err
}

// border is the transport of requests that strangers' words may lead away from a channel's own origin: each of them, also
// when it was redirected, goes the channel's way at that origin and through the guard anywhere else.
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

// headLength is how many bytes tell what a result is.
const headLength = 64

// resultType is the media type of a result by its first bytes, "" where it is neither a video nor a picture.
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

// boxType is the media type of an ISO base media file by its major brand (ISO/IEC 14496-12).
func boxType(brand string) string {
	switch brand {
	case "qt  ":
		return "video/quicktime"
	case "avif", "avis":
		return "image/avif"
	case "heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1": // pictures that browsers do not show
		return ""
	case "M4A ", "M4B ", "M4P ", "F4A ", "F4B ": // sound alone
		return ""
	}
	return "video/mp4"
}

// sameOrigin tells whether two addresses have scheme, host and port in common.
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
