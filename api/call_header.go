package api

import (
	"cmp"
	"net/http"

	"modelrelay/providers"
)

// callHeader picks the client's headers that may travel upstream with a call of its format: what it accepts and what
// opts into features. Credentials and the client's own account never do.
func callHeader(r *http.Request) http.Header {
	header := make(http.Header, 3)
	keep := func(name string) {
		if values := r.Header[name]; len(values) > 0 {
			header[name] = values
		}
	}
	keep("Accept")
	switch exchangeOf(r.Context()).format {
	case providers.OpenAI:
		keep("Openai-Beta")
	case providers.Anthropic:
		keep("Anthropic-Beta")
		if version := anthropicVersion(r); version != "" {
			header.Set("Anthropic-Version", version)
		}
	case providers.Gemini, providers.VendorC, providers.Generic: // they opt into features in bodies
	}
	return header
}

// anthropicVersion is format A's version header under the SDKs' name or the contract's, "" for none.
func anthropicVersion(r *http.Request) string {
	return cmp.Or(r.Header.Get("Anthropic-Version"), r.Header.Get("Vendora-Version"))
}
