package form

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"modelrelay/providers"
)

// sealed is the prefix of a text that is encrypted for a caller. Such a text is in a field for a vendor's encrypted content.
const sealed = "mr1.c."

// sealSize is the length of the key, in bytes: AES-256.
const sealSize = 32

// sealer returns the cipher of a caller. Its key is derived from the caller's key, so that no other caller can read the texts.
func sealer(call *providers.Call) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(call.Key.Reveal()), []byte(call.Token), "modelrelay compaction", sealSize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Sealing returns a function that encrypts a text for the caller. It does not refer to the call.
func Sealing(call *providers.Call) func(text string) string {
	aead, err := sealer(call)
	if err != nil { // never for a key of this length
		return func(string) string { return "" }
	}
	return func(text string) string {
		return sealed + base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, []byte(text), nil)) //nolint:gosec // The AEAD draws a random nonce for each text.
	}
}

// Unseal returns a text that was sealed for the same caller. ok is false for any other.
func Unseal(call *providers.Call, content string) (text string, ok bool) {
	encoded, ours := strings.CutPrefix(content, sealed)
	data, err := base64.RawURLEncoding.DecodeString(encoded)
	if !ours || err != nil {
		return "", false
	}
	aead, err := sealer(call)
	if err != nil {
		return "", false
	}
	plain, err := aead.Open(nil, nil, data, nil)
	return string(plain), err == nil
}
