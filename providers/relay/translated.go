package relay

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/providers/translate"
)

// translate translates the answer to the client's format. The fault is that of an upstream that failed before its answer began.
func (a *Answer) translate(translation *translate.Translation, upstream *body, key providers.Secret) *providers.Fault {
	if a.Header.Get("Content-Encoding") != "" {
		_ = upstream.Close() // the fault is returned
		return &providers.Fault{
			Kind: providers.Upstream, Message: "The upstream's answer is encoded, so that it cannot be read.", Blame: providers.BlameChannel,
			Malformed: true,
		}
	}
	var length int64
	if text := a.Header.Get("Content-Length"); text != "" {
		length, _ = strconv.ParseInt(text, 10, 64) // not a number: 0, unknown
	}
	a.translated = translation.Answer(upstream, a.Stream, length)
	if translation.Counts() {
		upstream.counter = a.translated
	}
	if fault := a.translated.Begin(); fault != nil {
		_ = upstream.Close() // the fault is returned
		fault = shown(fault, key)
		fault.Delivered = true
		return fault
	}
	translation.Header(a.Header)
	a.Stream, a.Translated, a.Status = translation.Stream(), translation.Call.Endpoint, http.StatusOK
	a.Holds = translation.Holds()
	a.Body = &translatedBody{a.translated, upstream, key}
	return nil
}

// shown returns a copy of the fault without the key, which an upstream may repeat.
func shown(fault *providers.Fault, key providers.Secret) *providers.Fault {
	own := *fault // several calls may share the fault of a context
	if key != "" {
		own.UpstreamMessage = strings.ReplaceAll(own.UpstreamMessage, key.Reveal(), key.String())
	}
	return &own
}

// translatedBody is a translated answer's body on its way to the client.
type translatedBody struct {
	answer   *translate.Answer
	upstream *body
	key      providers.Secret
}

// Read implements io.Reader.
func (b *translatedBody) Read(p []byte) (int, error) {
	n, err := b.answer.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	fault := shown(providers.AsFault(err), b.key)
	if b.upstream.err == nil {
		b.upstream.err = fault // the upstream's answer is not read any further; the trace records the fault
	}
	b.upstream.fail(fault)
	return n, fault
}

// Close implements io.Closer.
func (b *translatedBody) Close() error { return b.upstream.Close() }

// counted returns the answer of a token count that the gateway computes itself.
func counted(to router.Pick, vendor providers.Vendor, translation *translate.Translation) *Answer {
	header := make(http.Header)
	translation.Header(header)
	return &Answer{
		Status: http.StatusOK, Header: header, Body: io.NopCloser(bytes.NewReader(translation.Counted)),
		Channel: to.Channel.Name, Provider: vendor.Convention(), Translated: translation.Call.Endpoint,
	}
}
