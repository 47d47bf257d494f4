package tokens

import (
	"context"
	"fmt"

	"modelrelay/storage"
)

// fingerprintLetters is how much of a key's hash tells one key of a token from the next.
const fingerprintLetters = 16

// Credential returns a token by its id with the limits that hold for it, as Authenticate does by its key, and the fingerprint of its key, which changes when the
// token is rotated and tells nothing of the key. The token is not judged. storage.ErrNotFound: there is none.
// A token of the configuration file is answered from memory.
func (t *Store) Credential(ctx context.Context, id string) (Token, string, error) {
	if token, sum, ok := t.seeds.byID(id); ok {
		return *hold(&token).inForce(t.groups.Load()), sum.String()[:fingerprintLetters], nil
	}
	r, err := t.names.find(ctx, id)
	if err == nil && r.token.ID != id {
		err = storage.ErrNotFound
	}
	if err != nil {
		return Token{}, "", fmt.Errorf("find token %q: %w", id, err)
	}
	return *hold(&r.token).inForce(t.groups.Load()), r.sum.String()[:fingerprintLetters], nil
}

// Fingerprint is that of a key, as Credential returns it.
func Fingerprint(key string) string { return HashKey(key)[:fingerprintLetters] }
