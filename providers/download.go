package providers

import (
	"context"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// defaultVideoType is what a video is taken for whose upstream does not say.
const defaultVideoType = "video/mp4"

// LinkRequest makes the request for a result that an upstream names by a link, absolute or relative to the channel's
// address, and tells whether it lies at the channel's own origin: the adapter's credential may go there and nowhere else.
// Links come from upstreams the operator chose, so that private addresses are allowed; schemes other than http and https
// are not.
func LinkRequest(ctx context.Context, channel Channel, link string) (get *http.Request, own bool, err error) {
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
	get.Header.Set("User-Agent", Agent)
	return get, sameOrigin(base, at), nil
}

// Download sends the request for a video. An answer that is JSON or text is a *Fault: some upstreams say with a 200 that
// a result is gone. The caller closes Video.Body.
func Download(client *http.Client, get *http.Request) (Video, error) {
	resp, err := Send(client, get)
	if err != nil {
		return Video{}, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "application/json" || strings.HasPrefix(kind, "text/") {
		_ = resp.Body.Close()
		return Video{}, BrokenAnswer("content of type "+strconv.Quote(kind), nil)
	}
	if kind == "" || kind == "application/octet-stream" {
		kind = defaultVideoType
	}
	return Video{Body: resp.Body, Length: resp.ContentLength, ContentType: kind}, nil
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
