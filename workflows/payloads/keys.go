// Package payloads encrypts the payloads of tasks in Temporal: inputs, results, memos, heartbeats, failure messages, summaries,
// signals and headers. It works between the SDK and the connection, so all other code handles decrypted payloads. Search attributes
// are not encrypted, because Temporal searches by them.
//
// It must not import packages of tasks, activities or the configuration.
package payloads

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"modelrelay/providers/secret"
)

const (
	secretBytes = 32
	// MostKeys bounds a list of keys. A namespace deletes histories after days, and then their keys may be removed.
	MostKeys = 16
	// longestID bounds the id of a key, which every payload carries.
	longestID = 32
)

// Key is one of the keys that payloads are encrypted with.
type Key struct {
	ID     string      `yaml:"id" doc:"name of the key, stored with what it encrypts; never give it to another key"`
	Secret secret.Text `yaml:"key" doc:"32 random bytes in base64, as openssl rand -base64 32 writes them: inputs, results, memos, heartbeats, failures and summaries in Temporal are encrypted with the first key (AES-256-GCM), and read with all of them"`
}

// Check validates a key. The field is "id" or "key"; the error does not contain the key.
func (k Key) Check() (field string, err error) {
	switch {
	case k.ID == "":
		return "id", errors.New("is missing")
	case len(k.ID) > longestID || strings.ContainsFunc(k.ID, notOfID):
		return "id", fmt.Errorf("must have at most %d letters, digits, dots, dashes and underscores", longestID)
	case k.Secret == "":
		return "key", errors.New("is missing")
	}
	if _, err := k.cipher(); err != nil {
		return "key", err
	}
	return "", nil
}

func notOfID(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
}

func (k Key) cipher() (cipher.AEAD, error) {
	raw, err := base64.StdEncoding.DecodeString(k.Secret.Reveal())
	if err != nil || len(raw) != secretBytes {
		return nil, errors.New("must be 32 random bytes in base64, the output of openssl rand -base64 32")
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, fmt.Errorf("create the cipher: %w", err)
	}
	return cipher.NewGCM(block)
}

// Keys is the list of keys in use. It may change at any time. It is safe for concurrent use.
type Keys struct{ list atomic.Pointer[[]opened] }

// opened is a key that is ready for use.
type opened struct {
	id   string
	aead cipher.AEAD
}

// NewKeys returns Keys with a list of different keys. The first key encrypts and all keys decrypt. An empty list encrypts nothing.
func NewKeys(list []Key) (*Keys, error) {
	k := new(Keys)
	return k, k.Load(list)
}

// Load replaces the list. An invalid list changes nothing.
func (k *Keys) Load(list []Key) error {
	next := make([]opened, 0, len(list))
	for _, key := range list {
		if field, err := key.Check(); err != nil {
			return fmt.Errorf("%s %w", field, err)
		}
		aead, _ := key.cipher() // it was checked
		next = append(next, opened{key.ID, aead})
	}
	k.list.Store(&next)
	return nil
}

// writer returns the key that encrypts, and false if there is none.
func (k *Keys) writer() (opened, bool) {
	list := *k.list.Load()
	if len(list) == 0 {
		return opened{}, false
	}
	return list[0], true
}

// reader returns the key with the id, or an *UnknownKeyError.
func (k *Keys) reader(id string) (opened, error) {
	for _, key := range *k.list.Load() {
		if key.id == id {
			return key, nil
		}
	}
	return opened{}, &UnknownKeyError{ID: id}
}

// UnknownKeyError reports a payload whose key is not in the list.
type UnknownKeyError struct{ ID string }

// Error names the id of the key.
func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("a payload is encrypted with the key %q, which temporal.payload_keys does not have", e.ID)
}
