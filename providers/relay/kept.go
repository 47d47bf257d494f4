package relay

import (
	"context"
	"net/http"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Kept asks the channel and key that made an earlier answer for it, for a token of the group. For another token than the one that it
// was made for it does not exist, nor does one whose origin is not known. The error is a *providers.Fault; ctx ends the upstream request,
// also while the body is read. The caller closes the Answer's body, which counts nothing.
func (r *Relay) Kept(ctx context.Context, group, token string, kept providers.Kept) (*Answer, error) {
	unknown := providers.Faultf(providers.NotFound, "Nothing with the id %q was found.", kept.ID)
	unknown.Accepted = providers.NotAccepted
	if r.makers == nil || kept.ID == "." || kept.ID == ".." {
		return nil, unknown
	}
	maker := r.makers.Find(ctx, kept.ID)[0]
	channel, found := r.picker.router.Channel(maker.Channel)
	if maker.Token == "" || maker.Token != token || !found || !channel.Serves(group) {
		return nil, unknown
	}
	vendor := r.catalog[channel.Vendor]
	keeper, keeps := vendor.Relay.(providers.Keeper)
	key, configured := channel.KeyByFingerprint(maker.Fingerprint)
	if !keeps || !configured {
		return nil, unknown
	}
	if channel.BaseURL == "" {
		channel.BaseURL = vendor.BaseURL
	}
	sent, cancel := context.WithCancelCause(ctx)
	clock := newWatch(cancel, r.waits.firstByte)
	resp, err := keeper.Kept(sent, providers.Target{Channel: channel, Key: key}, kept) //nolint:bodyclose // the answer's body closes it
	if err != nil {
		clock.stop()
		cancel(nil)
		fault := providers.AsFault(err)
		scrub(fault, key)
		return nil, fault
	}
	answer := &Answer{
		Status: resp.StatusCode, Header: passed(resp.Header), Stream: isStream(resp.Header), RequestID: upstream.RequestID(resp.Header),
		Channel: channel.Name, Vendor: channel.Vendor, Provider: vendor.Convention(), Attempts: 1,
	}
	body := &body{upstream: resp.Body, clock: clock, idle: r.waits.idle, cancel: cancel, caller: ctx, sent: sent, mayBeEmpty: kept.Do == providers.KeptDelete}
	answer.Body = body
	if resp.ContentLength == 0 || resp.StatusCode == http.StatusNoContent { // said before the body; first finds out the rest
		clock.stop()
		return answer, nil
	}
	if fault := body.first(); fault != nil {
		_ = body.Close() // the fault says it all
		return nil, fault
	}
	return answer, nil
}
