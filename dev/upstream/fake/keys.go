package fake

import (
	"net/http"
	"strings"
)

// SchemeKey takes the key from an Authorization header of another scheme than Bearer: "Token KEY", "Key KEY".
func SchemeKey(scheme string) func(*Exchange) (string, *Problem) {
	return keyFrom(func(header http.Header) string {
		word, key, _ := strings.Cut(header.Get("Authorization"), " ")
		if word != scheme {
			return ""
		}
		return key
	})
}

// HeaderKey takes the key from a header of its own.
func HeaderKey(name string) func(*Exchange) (string, *Problem) {
	return keyFrom(func(header http.Header) string { return header.Get(name) })
}

func keyFrom(read func(http.Header) string) func(*Exchange) (string, *Problem) {
	return func(x *Exchange) (string, *Problem) {
		key := read(x.HTTP.Header)
		if !strings.HasPrefix(key, KeyPrefix) {
			return key, &Problem{Status: http.StatusUnauthorized, Kind: Unauthenticated, Message: "Invalid API key."}
		}
		return key, nil
	}
}
