package chat

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

const (
	sealPart = 12 // bytes: of the nonce and of each code
	sealSize = 3 * sealPart
)

// Seal issues what a vendor wants back untouched (a signature, encrypted reasoning, redacted thinking), bound to what it was issued with.
// The key is no secret: a fake that started anew still knows its own seals.
func Seal(kind, bound string) string {
	b := make([]byte, sealPart, sealSize)
	_, _ = rand.Read(b) // never fails
	issued, whole := sealCodes(kind, bound, b)
	return base64.StdEncoding.EncodeToString(append(append(b, issued...), whole...))
}

// Sealed reports whether a seal of the kind was issued here, and whether with this bound.
func Sealed(kind, bound, text string) (issued, unchanged bool) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		b, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "=")) // clients that decode bytes may code them either way
	}
	if err != nil || len(b) != sealSize {
		return false, false
	}
	first, whole := sealCodes(kind, bound, b[:sealPart])
	issued = hmac.Equal(first, b[sealPart:2*sealPart])
	return issued, issued && hmac.Equal(whole, b[2*sealPart:])
}

func sealCodes(kind, bound string, nonce []byte) (issued, whole []byte) {
	mac := hmac.New(sha256.New, []byte("the fake upstreams of modelrelay/dev"))
	mac.Write([]byte(kind))
	mac.Write(nonce)
	issued = mac.Sum(nil)[:sealPart]
	mac.Write([]byte(bound))
	return issued, mac.Sum(nil)[:sealPart]
}
