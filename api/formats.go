package api

import (
	"net/http"
	"strings"

	"modelrelay/providers"
)

// formatOf tells by path and headers which format a request speaks, for answers given before or without a route.
func formatOf(r *http.Request) providers.Format {
	path := r.URL.Path
	switch {
	case path == "/v1/messages" || strings.HasPrefix(path, "/v1/messages/"):
		return providers.Anthropic
	case strings.HasPrefix(path, "/v1beta/"):
		return providers.Gemini
	case path == "/vendorC" || path == "/vendorC/" || path == "/jimeng" || path == "/jimeng/":
		return providers.VendorC
	case path == "/v1/models":
		return modelsFormat(r)
	case strings.HasPrefix(path, "/v1/models/"):
		if strings.Contains(path, ":") && r.Method == http.MethodPost {
			return providers.Gemini
		}
		return modelsFormat(r)
	default:
		return providers.OpenAI
	}
}

// modelsFormat selects the shape of the model list as the contract says. The real SDK of format A sends its version
// header with any credential; the contract's own counts only beside x-api-key.
func modelsFormat(r *http.Request) providers.Format {
	header := r.Header
	switch {
	case header.Get("Anthropic-Version") != "",
		header.Get("X-Api-Key") != "" && header.Get("Vendora-Version") != "":
		return providers.Anthropic
	case header.Get("X-Vendorb-Api-Key") != "", header.Get("X-Goog-Api-Key") != "":
		return providers.Gemini
	case strings.Contains(r.URL.RawQuery, "key") && r.URL.Query().Get("key") != "":
		return providers.Gemini
	default:
		return providers.OpenAI
	}
}
