package veo

import "net/http"

// NewVideosAt makes an adapter that reads objects at the channel's own origin, and makes tokens over another client.
func NewVideosAt(client, tokens *http.Client) *Videos {
	v := NewVideos(client)
	v.storage, v.tokens = "", newTokens(tokens)
	return v
}
