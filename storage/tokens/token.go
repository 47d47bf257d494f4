package tokens

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"modelrelay/providers/secret"
	"modelrelay/storage"
)

var (
	// ErrDisabled says that a token is disabled or revoked.
	ErrDisabled = errors.New("token is disabled")
	// ErrExpired is returned for a token whose time has passed.
	ErrExpired = errors.New("token has expired")
	// ErrSeeded is returned where a token's key and secret are in the configuration file and can only be changed there.
	ErrSeeded = errors.New("token comes from the configuration file: change it there")
)

// The words of Token.Operations.
const (
	OperationRelay    = "relay"    // every relayed call, also in the background
	OperationVideo    = "video"    // all that is done with videos
	OperationRealtime = "realtime" // realtime conversations
)

// Operations lists the words that a token's operations are made of.
func Operations() []string { return []string{OperationRelay, OperationVideo, OperationRealtime} }

// Token is a client credential without its key.
type Token struct {
	// ID is stable: the name of a token of the configuration file, else random ("tok_…"). It survives rotation, so
	// ownership, usage and limits hang on it.
	ID     string   `json:"id"`
	Name   string   `json:"name"`
	Group  string   `json:"group"`
	Models []string `json:"models,omitempty"` // public names with "*" patterns; none: every model of the group

	Limits

	Budget float64 `json:"budget,omitempty"` // money it may spend in its life, in units of the currency; 0: no limit
	Weight int     `json:"weight,omitempty"`
	Lane   string  `json:"lane,omitempty"`

	Expires       time.Time   `json:"expires,omitzero"`     // zero: never
	Networks      []string    `json:"networks,omitempty"`   // sources a call may come from, CIDR; none: any
	Operations    []string    `json:"operations,omitempty"` // none: all
	WebhookURL    string      `json:"webhook_url,omitempty"`
	WebhookSecret secret.Text `json:"webhook_secret,omitempty"`
	// OldWebhookSecrets are replaced ones that still sign, the newest first; set by RotateWebhookSecret and Seed.
	OldWebhookSecrets []OldSecret `json:"old_webhook_secrets,omitempty"`

	Disabled  bool      `json:"disabled,omitempty"`
	Revoked   bool      `json:"revoked,omitempty"` // by an operator, permanently; such a token is Disabled as well
	Seeded    bool      `json:"seeded,omitempty"`  // is in the configuration file
	CreatedAt time.Time `json:"created_at,omitzero"`
	// Version counts the changes of a token that is not of the configuration file, from 1; 0: it has not changed since they
	// are counted.
	Version int64  `json:"version,omitempty"`
	Hint    string `json:"hint,omitempty"` // "sk-…abcd", the key's last four characters, for people
}

// Allows reports whether the token may see a public model name. A "*" matches any run of characters, slashes too.
func (t *Token) Allows(model string) bool {
	return len(t.Models) == 0 || slices.ContainsFunc(t.Models, func(pattern string) bool { return matches(pattern, model) })
}

// Permits reports whether the token may be used for operations of a word.
func (t *Token) Permits(operation string) bool {
	return len(t.Operations) == 0 || slices.Contains(t.Operations, operation)
}

// Admits reports whether a call may come from an address. One that is not known comes from no network.
func (t *Token) Admits(source netip.Addr) bool {
	if len(t.Networks) == 0 {
		return true
	}
	source = source.Unmap().WithZone("")
	return slices.ContainsFunc(t.Networks, func(network string) bool {
		prefix, err := netip.ParsePrefix(network)
		return err == nil && prefix.Contains(source)
	})
}

// Usable is nil for a token that may be used at this moment, else ErrDisabled or ErrExpired.
func (t *Token) Usable(now time.Time) error {
	switch {
	case t.Disabled || t.Revoked:
		return ErrDisabled
	case !t.Expires.IsZero() && !now.Before(t.Expires):
		return ErrExpired
	}
	return nil
}

// State says in one word whether the token may be used at this moment: active, disabled, expired or revoked.
func (t *Token) State(now time.Time) string {
	err := t.Usable(now)
	switch {
	case t.Revoked:
		return "revoked"
	case errors.Is(err, ErrExpired):
		return "expired"
	case err != nil:
		return "disabled"
	}
	return "active"
}

// Reads is how many reads of tasks a minute one process takes of the token; 0: any number.
func (t *Token) Reads() int { return inForce(t.ReadsPerMinute, DefaultReads) }

// Watchers is how many event streams and waits of tasks the token may have open at one process; 0: any number.
func (t *Token) Watchers() int { return inForce(t.MaxWatchers, DefaultWatchers) }

// Downloads is how many files one process sends the token at a time; 0: any number.
func (t *Token) Downloads() int { return downloadsPerWatcher * t.Watchers() }

// Counted is what admission counts of a call before anybody knows what it may cost: all limits but the budget.
func (t *Token) Counted() storage.Allowance {
	return storage.Allowance{
		Token: t.ID, RequestsPerMinute: t.RequestsPerMinute, TokensPerMinute: t.TokensPerMinute,
		Concurrency: t.Concurrency,
	}
}

// Charged is what admission reserves the money of a counted call from: the budget alone.
func (t *Token) Charged() storage.Allowance {
	return storage.Allowance{Token: t.ID, Budget: storage.Billionths(t.Budget)}
}

// Admitted is both, for a call that is counted and whose money is reserved in one step.
func (t *Token) Admitted() storage.Allowance {
	whole := t.Counted()
	whole.Budget = t.Charged().Budget
	return whole
}

// Sockets is what admission counts of open realtime connections: each is a call in flight, of which there may be MaxSockets,
// or DefaultSockets.
func (t *Token) Sockets() storage.Allowance {
	return storage.Allowance{Token: t.ID + "\x00sockets", Concurrency: inForce(t.MaxSockets, DefaultSockets)}
}

// matches compares a name with a pattern whose "*" takes any run of characters.
func matches(pattern, name string) bool {
	part, rest, star := strings.Cut(pattern, "*")
	name, ok := strings.CutPrefix(name, part)
	for ok && star {
		if part, rest, star = strings.Cut(rest, "*"); !star {
			return strings.HasSuffix(name, part)
		}
		_, name, ok = strings.Cut(name, part)
	}
	return ok && name == ""
}

// maxKey is the longest key in characters; a longer credential is none of ours and is not even hashed.
const maxKey = 512

// NewKey makes a token's key: "sk-" and 48 random letters and digits, 240 bits.
func NewKey() string { return "sk-" + rand.Text() + rand.Text()[:22] }

// keySum is the SHA-256 of a token's key, the only form in which a key is kept: in Redis in lower-case hex.
type keySum [sha256.Size]byte

// sumOf hashes a key of at most maxKey bytes without an allocation.
func sumOf(key string) keySum {
	var buf [maxKey]byte
	return sha256.Sum256(buf[:copy(buf[:], key)])
}

func (s keySum) String() string { return hex.EncodeToString(s[:]) }

func parseKeySum(text string) (keySum, bool) {
	var s keySum
	n, err := hex.Decode(s[:], []byte(text))
	return s, err == nil && n == len(s) && len(text) == 2*len(s)
}

// hint is what a person may see of a key. A short key shows nothing of itself.
func hint(key string) string {
	if len(key) < 16 {
		return "…"
	}
	return fmt.Sprintf("sk-…%s", key[len(key)-4:])
}
