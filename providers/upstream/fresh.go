package providers

import "net/http"

// Fresh returns a client like the given one that makes a new connection for every request. Paid submits use it: a kept
// connection that the upstream closes at the wrong moment would leave their outcome unknown, and a handshake costs
// nothing beside a video.
func Fresh(client *http.Client) *http.Client {
	fresh := *client
	if transport, ok := client.Transport.(*http.Transport); ok {
		clone := transport.Clone()
		clone.DisableKeepAlives = true
		fresh.Transport = clone
	}
	return &fresh
}
