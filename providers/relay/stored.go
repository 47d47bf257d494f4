package relay

import (
	"context"
	"net/http"

	"modelrelay/providers"
)

// Stored sends a request about an earlier answer to the channel and key that made it, for a token of the group. An answer that was made
// for another token, or has no recorded origin, does not exist. The error is a *providers.Fault. The end of ctx ends the upstream
// request, also while the body is read. The caller closes the Answer's body, which counts nothing.
func (r *Relay) Stored(ctx context.Context, group, token string, request providers.StoredRequest) (*Answer, error) {
	unknown := providers.Faultf(providers.NotFound, "Nothing with the id %q was found.", request.ID)
	unknown.Accepted = providers.NotAccepted
	if r.origins == nil || request.ID == "." || request.ID == ".." {
		return nil, unknown
	}
	origin := r.origins.Find(ctx, request.ID)[0]
	channel, found := r.picker.router.Channel(origin.Channel)
	if origin.Token == "" || origin.Token != token || !found || !channel.Serves(group) {
		return nil, unknown
	}
	vendor := r.catalog[channel.Vendor]
	reader, keeps := vendor.Relay.(providers.StoredReader)
	key, configured := channel.KeyByFingerprint(origin.Fingerprint)
	if !keeps || !configured {
		return nil, unknown
	}
	if channel.BaseURL == "" {
		channel.BaseURL = vendor.BaseURL
	}
	sent, cancel := context.WithCancelCause(ctx)
	body := newBody(ctx, sent, cancel, r.waits)
	target := providers.Target{Channel: channel, Key: key}
	resp, err := reader.Stored(sent, target, request) //nolint:bodyclose // the answer's body closes it
	if err != nil {
		return nil, body.refused(err, key)
	}
	answer := r.newAnswer(channel.Name, channel.Vendor, resp)
	body.upstream, body.mayBeEmpty = resp.Body, request.Do == providers.StoredDelete
	answer.Body, answer.Attempts = body, 1
	if resp.ContentLength == 0 || resp.StatusCode == http.StatusNoContent { // otherwise first finds that a body is empty
		body.clock.Stop()
		return answer, nil
	}
	if fault := body.first(); fault != nil {
		_ = body.Close() // the fault is returned
		return nil, fault
	}
	return answer, nil
}
