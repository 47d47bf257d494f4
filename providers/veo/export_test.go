package veo

import "net/http"

// NewVideosAt makes an adapter that reads objects at the channel's own origin, and makes tokens over another client.
func NewVideosAt(client, tokens *http.Client) *Videos {
	v := NewVideos(client)
	v.storage, v.tokens = "", newTokens(tokens)
	return v
}

// Kept is of how many keys there are access tokens, or were.
func (v *Videos) Kept() int {
	v.tokens.mu.Lock()
	defer v.tokens.mu.Unlock()
	return len(v.tokens.byKey)
}
