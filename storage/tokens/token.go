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
	// ErrDisabled reports that the token is disabled or revoked.
	ErrDisabled = errors.New("token is disabled")
	// ErrExpired reports that the token's Expires has passed.
	ErrExpired = errors.New("token has expired")
	// ErrSeeded reports that the token is in the configuration file, and can only be changed there.
	ErrSeeded = errors.New("token comes from the configuration file: change it there")
)

// The values of Token.Operations.
const (
	OperationRelay    = "relay"    // relayed calls, including background calls
	OperationVideo    = "video"    // all operations on videos
	OperationRealtime = "realtime" // realtime conversations
)

// Operations returns the values of Token.Operations.
func Operations() []string { return []string{OperationRelay, OperationVideo, OperationRealtime} }

// Token is a client credential without its key.
type Token struct {
	// ID is the name of a token of the configuration file, else random ("tok_…"). A rotation does not change it, so ownership, usage
	// and limits refer to it.
	ID     string   `json:"id"`
	Name   string   `json:"name" yaml:"name" doc:"unique; the token's stable id"`
	Group  string   `json:"group" yaml:"group" required:"true" doc:"group of channels that the token may use"`
	Models []string `json:"models,omitempty" yaml:"models" doc:"public model names with * patterns; empty: every model of the group"`

	Limits

	Budget float64 `json:"budget,omitempty" yaml:"budget" doc:"money that the token may spend in total, in the currency of prices; 0: no limit"`
	Weight int     `json:"weight,omitempty" yaml:"weight" range:"0-" doc:"share of the video jobs of a full channel, and of the background calls of a full worker, among the waiting tokens of a lane; 0: 1"`
	Lane   string  `json:"lane,omitempty" yaml:"lane" enum:"high,normal,low" doc:"high, normal or low; a task waits while tasks of a higher lane wait"`

	Expires       time.Time   `json:"expires,omitzero" yaml:"expires" doc:"date or RFC 3339 time; empty: never"`
	Networks      []string    `json:"networks,omitempty" yaml:"networks" doc:"addresses or CIDR ranges from which the token may be used; empty: any"`
	Operations    []string    `json:"operations,omitempty" yaml:"operations" doc:"operations of the token: relay (calls, also in the background), video (videos), realtime; empty: all"`
	WebhookURL    string      `json:"webhook_url,omitempty" yaml:"webhook_url" doc:"URL that receives the events of its tasks; empty: none"`
	WebhookSecret secret.Text `json:"webhook_secret,omitempty" yaml:"webhook_secret" doc:"whsec_ and 24 to 64 bytes in Base64; it signs the events. After a change, the previous secret also signs for one more day"`
	// OldWebhookSecrets are replaced secrets that still sign, the newest first; RotateWebhookSecret, Update and Seed set them.
	OldWebhookSecrets []OldSecret `json:"old_webhook_secrets,omitempty"`

	Disabled  bool      `json:"disabled,omitempty" yaml:"disabled" doc:"refuse the token"`
	Revoked   bool      `json:"revoked,omitempty"` // by an operator, permanently; then Disabled is set too
	Seeded    bool      `json:"seeded,omitempty"`  // is in the configuration file
	CreatedAt time.Time `json:"created_at,omitzero"`
	// Version counts the changes of a token that is not in the configuration file, from 1; 0: unchanged since changes are counted.
	Version int64  `json:"version,omitempty"`
	Hint    string `json:"hint,omitempty"` // "sk-…" and the key's last four characters, for display
}

// Allows reports whether the token may use a public model name. A "*" matches any run of characters, including slashes.
func (t *Token) Allows(model string) bool {
	return len(t.Models) == 0 || slices.ContainsFunc(t.Models, func(pattern string) bool { return matches(pattern, model) })
}

// Permits reports whether the token may be used for an operation, a value of Operations.
func (t *Token) Permits(operation string) bool {
	return len(t.Operations) == 0 || slices.Contains(t.Operations, operation)
}

// Admits reports whether a call may come from an address. The zero Addr is in no network.
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

// Usable returns nil if the token may be used now, else ErrDisabled or ErrExpired.
func (t *Token) Usable(now time.Time) error {
	switch {
	case t.Disabled || t.Revoked:
		return ErrDisabled
	case !t.Expires.IsZero() && !now.Before(t.Expires):
		return ErrExpired
	}
	return nil
}

// State returns the token's state: active, disabled, expired or revoked.
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

// Reads returns the limit of the token's reads of tasks per minute and process; 0: no limit.
func (t *Token) Reads() int { return inForce(t.ReadsPerMinute, DefaultReads) }

// Watchers returns the limit of the token's open event streams and waits of tasks per process; 0: no limit.
func (t *Token) Watchers() int { return inForce(t.MaxWatchers, DefaultWatchers) }

// Downloads returns the limit of the token's open downloads per process; 0: no limit.
func (t *Token) Downloads() int { return downloadsPerWatcher * t.Watchers() }

// Counted returns the allowance of a call whose cost is not known yet: all limits except the budget.
func (t *Token) Counted() storage.Allowance {
	return storage.Allowance{
		Token: t.ID, RequestsPerMinute: t.RequestsPerMinute, TokensPerMinute: t.TokensPerMinute,
		Concurrency: t.Concurrency,
	}
}

// Charged returns the allowance from which a counted call's money is reserved: only the budget.
func (t *Token) Charged() storage.Allowance {
	return storage.Allowance{Token: t.ID, Budget: storage.Billionths(t.Budget)}
}

// Admitted returns both, for a call that is counted and reserves its money in one step.
func (t *Token) Admitted() storage.Allowance {
	whole := t.Counted()
	whole.Budget = t.Charged().Budget
	return whole
}

// Sockets returns the allowance of open realtime connections. Each counts as a call in flight; the limit is MaxSockets, or DefaultSockets.
func (t *Token) Sockets() storage.Allowance {
	return storage.Allowance{Token: t.ID + "\x00sockets", Concurrency: inForce(t.MaxSockets, DefaultSockets)}
}

// matches compares a name with a pattern whose "*" matches any run of characters.
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

// maxKey is the maximal length of a key in bytes; a longer credential is not hashed.
const maxKey = 512

// NewKey makes a token's key: "sk-" and 48 random letters and digits, 240 bits.
func NewKey() string { return "sk-" + rand.Text() + rand.Text()[:22] }

// keySum is the SHA-256 of a token's key, the only form in which a key is stored: in Redis in lower-case hex.
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

// hint returns the part of a key that may be displayed; nothing of a short key.
func hint(key string) string {
	if len(key) < 16 {
		return "…"
	}
	return fmt.Sprintf("sk-…%s", key[len(key)-4:])
}
