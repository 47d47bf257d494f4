package api

import (
	"encoding/base64"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"modelrelay/providers"
)

// newUpload makes an input of uploaded bytes. The content type is the client's where it names an image, and read from
// the bytes where it names none.
func newUpload(param, name, contentType string, data []byte) (providers.Media, error) {
	if len(data) == 0 {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' is empty.", param)
	}
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil || kind == "application/octet-stream" {
		kind = http.DetectContentType(data)
	}
	if !strings.HasPrefix(kind, "image/") {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' must be an image.", param)
	}
	return providers.Media{Name: name, ContentType: kind, Size: int64(len(data)), Data: data}, nil
}

// newMedia makes an input of an image URL: a data URL is an upload, any other is passed on and never fetched.
func newMedia(param, address string) (providers.Media, error) {
	if rest, ok := cutPrefixFold(address, "data:"); ok {
		return decodeDataURL(param, rest)
	}
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' must be an http, https or data URL.", param)
	}
	return providers.Media{URL: address}, nil
}

// decodeDataURL reads what follows "data:". The contract's images are base64.
func decodeDataURL(param, rest string) (providers.Media, error) {
	head, encoded, found := strings.Cut(rest, ",")
	contentType, isBase64 := strings.CutSuffix(head, ";base64")
	if !found || !isBase64 {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' must be a base64 data URL.", param)
	}
	encoding := base64.StdEncoding
	if !strings.HasSuffix(encoded, "=") && len(encoded)%4 != 0 {
		encoding = base64.RawStdEncoding
	}
	data, err := encoding.DecodeString(encoded)
	if err != nil {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' is not valid base64.", param)
	}
	return newUpload(param, "", contentType, data)
}

func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
		return s[len(prefix):], true
	}
	return s, false
}
