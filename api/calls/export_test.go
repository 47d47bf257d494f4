package calls

import (
	"net/http"
	"net/url"

	"modelrelay/activities"
)

// Preferences is preferencesOf.
func Preferences(header http.Header) map[string]string { return preferencesOf(header) }

// Digest is digestOf.
func Digest(call activities.StagedCall, contentType string, body []byte) (string, error) {
	return digestOf(call, contentType, body)
}

// StagedQuery is queryWithoutKey.
func StagedQuery(address *url.URL) string { return queryWithoutKey(address) }
