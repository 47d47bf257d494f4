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

// translate makes the answer one of the client's format. The fault is that of an upstream which failed before it said anything.
func (a *Answer) translate(translation *translate.Translation, upstream *body, key providers.Secret) *providers.Fault {
	if a.Header.Get("Content-Encoding") != "" {
		_ = upstream.Close() // it is of no use
		return &providers.Fault{
			Kind: providers.Upstream, Message: "The upstream's answer is encoded, so that it cannot be read.", Blame: providers.BlameChannel,
			Malformed: true,
		}
	}
	var length int64
	if said := a.Header.Get("Content-Length"); said != "" {
		length, _ = strconv.ParseInt(said, 10, 64) // 0 of nonsense: not known
	}
	a.translated = translation.Answer(upstream, a.Stream, length)
	if translation.Counts() {
		upstream.counter = a.translated
	}
	if fault := a.translated.Begin(); fault != nil {
		_ = upstream.Close() // the fault says it all
		said := shown(fault, key)
		said.Delivered = true
		return said
	}
	translation.Header(a.Header)
	a.Stream, a.Translated, a.Status = translation.Stream(), translation.Call.Endpoint, http.StatusOK
	a.Holds = translation.Holds()
	a.Body = &translatedBody{a.translated, upstream, key}
	return nil
}

// shown is the fault without the key that an upstream may repeat; it is the caller's own.
func shown(fault *providers.Fault, key providers.Secret) *providers.Fault {
	said := *fault // that of a context may be everybody's
	if key != "" {
		said.UpstreamMessage = strings.ReplaceAll(said.UpstreamMessage, key.Reveal(), key.String())
	}
	return &said
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
		b.upstream.err = fault // nothing more of it is read; the trace records it
	}
	b.upstream.fail(fault)
	return n, fault
}

// Close implements io.Closer.
func (b *translatedBody) Close() error { return b.upstream.Close() }

// counted is the answer of a call that the gateway answers itself.
func counted(to router.Pick, vendor providers.Vendor, translation *translate.Translation) *Answer {
	header := make(http.Header)
	translation.Header(header)
	return &Answer{
		Status: http.StatusOK, Header: header, Body: io.NopCloser(bytes.NewReader(translation.Counted)),
		Channel: to.Channel.Name, Vendor: to.Channel.Vendor, UpstreamModel: to.Model, Provider: vendor.Convention(),
		Translated: translation.Call.Endpoint,
	}
}
