// Package payloads encrypts what a task leaves with Temporal: inputs, results, memos, heartbeats, the words of failures,
// summaries, signals and headers. It stands between the SDK and the connection, so that no part of the program has to think of
// it: what goes out is encrypted, what comes in is clear. Search attributes stay as they are, since Temporal searches by them.
//
// It must not import packages of tasks, activities or the configuration.
package payloads

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"modelrelay/providers/secret"
)

const (
	// secretBytes is the length of a key of AES-256.
	secretBytes = 32
	// mostKeys bounds the list: a namespace forgets histories after days, and the keys of forgotten ones may go.
	mostKeys = 16
	// longestID bounds a key's name, which every payload carries.
	longestID = 32
)

// Key is one of the keys that payloads are encrypted with.
type Key struct {
	// ID names it in every payload that it encrypts: letters, digits, ".", "_" and "-". It never stands for another key.
	ID string
	// Secret is 32 random bytes in base64, as "openssl rand -base64 32" writes them.
	Secret secret.Text
}

// Check tells what is wrong with a key, in words that do not hold it; the field is "id" or "key".
func (k Key) Check() (field string, err error) {
	switch {
	case k.ID == "":
		return "id", errors.New("is missing")
	case len(k.ID) > longestID || strings.ContainsFunc(k.ID, notOfID):
		return "id", fmt.Errorf("wants up to %d letters, digits, dots, dashes and underscores", longestID)
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

// CheckCount tells whether there may be so many keys.
func CheckCount(n int) error {
	if n > mostKeys {
		return fmt.Errorf("has more than %d keys", mostKeys)
	}
	return nil
}

func (k Key) cipher() (cipher.AEAD, error) {
	raw, err := base64.StdEncoding.DecodeString(k.Secret.Reveal())
	if err != nil || len(raw) != secretBytes {
		return nil, errors.New("wants 32 random bytes in base64, as openssl rand -base64 32 writes them")
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, fmt.Errorf("make the cipher: %w", err)
	}
	return cipher.NewGCM(block)
}

// Keys are those in use. They may change while payloads pass. It is safe for concurrent use.
type Keys struct{ list atomic.Pointer[[]opened] }

// opened is a key that is ready.
type opened struct {
	id   string
	aead cipher.AEAD
}

// NewKeys starts with a list, whose first encrypts and all of which decrypt; none: nothing is encrypted.
func NewKeys(list []Key) (*Keys, error) {
	k := new(Keys)
	return k, k.Load(list)
}

// Load replaces the list, for payloads that pass from now on. A list that is wrong changes nothing.
func (k *Keys) Load(list []Key) error {
	if err := CheckCount(len(list)); err != nil {
		return err
	}
	next := make([]opened, 0, len(list))
	for _, key := range list {
		if field, err := key.Check(); err != nil {
			return fmt.Errorf("%s %w", field, err)
		}
		if slices.ContainsFunc(next, func(o opened) bool { return o.id == key.ID }) {
			return fmt.Errorf("two keys are called %q", key.ID)
		}
		aead, err := key.cipher()
		if err != nil {
			return err
		}
		next = append(next, opened{key.ID, aead})
	}
	k.list.Store(&next)
	return nil
}

// writer is the key that encrypts; false: there is none.
func (k *Keys) writer() (opened, bool) {
	list := *k.list.Load()
	if len(list) == 0 {
		return opened{}, false
	}
	return list[0], true
}

// reader is the key of the id.
func (k *Keys) reader(id string) (opened, error) {
	for _, key := range *k.list.Load() {
		if key.id == id {
			return key, nil
		}
	}
	return opened{}, &UnknownKeyError{ID: id}
}

// UnknownKeyError is a payload whose key is not in the list.
type UnknownKeyError struct{ ID string }

// Error names the key.
func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("a payload is encrypted with the key %q, which temporal.payload_keys does not have", e.ID)
}
