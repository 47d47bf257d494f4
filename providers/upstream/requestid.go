package upstream

import (
	"net/http"
	"strings"
)

// maxRequestID bounds what is kept of an upstream's name of a request, in bytes: the longest of the vendors' have 40.
const maxRequestID = 128

// RequestID is what an upstream calls the request that it answered, by which its support finds it: the first of the headers in
// which vendors say so. It is "" where none has one, or one that is not plain.
func RequestID(header http.Header) string {
	for _, name := range [...]string{
		"X-Request-Id",     // OpenAI, Replicate, Alibaba Cloud and most who build on OpenAI's API
		"Request-Id",       // Anthropic
		"Apim-Request-Id",  // Azure
		"X-Amzn-Requestid", // Amazon
		"X-Fal-Request-Id", // fal
		"X-Tt-Logid",       // Volcano Engine
	} {
		if values := header[name]; len(values) > 0 && isRequestID(values[0]) {
			return strings.Clone(values[0]) // the header's own text is one with all others of the answer
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
