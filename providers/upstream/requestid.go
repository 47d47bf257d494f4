package upstream

import (
	"net/http"
	"strings"
)

// maxRequestID bounds the request id of an upstream, in bytes. The longest of the known vendors' has 40.
const maxRequestID = 128

// RequestID returns the upstream's id of the request: the first of the vendors' headers with a plain value, "" for none.
func RequestID(header http.Header) string {
	for _, name := range [...]string{
		"X-Request-Id",     // OpenAI, Replicate, Alibaba Cloud and most vendors with OpenAI's API
		"Request-Id",       // Anthropic
		"Apim-Request-Id",  // Azure
		"X-Amzn-Requestid", // Amazon
		"X-Fal-Request-Id", // fal
		"X-Tt-Logid",       // Volcano Engine
	} {
		if values := header[name]; len(values) > 0 && isRequestID(values[0]) {
			return strings.Clone(values[0]) // otherwise the whole header stays in memory
		}
	}
	return ""
}

func isRequestID(id string) bool {
	if id == "" || len(id) > maxRequestID {
		return false
	}
	for i := range len(id) {
		if c := id[i]; c <= ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' {
			return false
		}
	}
	return true
}
