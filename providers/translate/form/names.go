package form

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"math/big"
	"strings"
	"unicode/utf8"
)

// NameRule defines the tool names that an upstream accepts: letters, digits, "_" and "-".
type NameRule struct {
	// Max is the maximum length in bytes.
	Max int
	// Also are further permitted characters.
	Also string
	// Letter: it begins with a letter or "_".
	Letter bool
}

// Fits reports whether the rule permits a name.
func (r NameRule) Fits(name string) bool {
	return name != "" && len(name) <= r.Max && (!r.Letter || isLetter(name[0])) &&
		strings.IndexFunc(name, func(c rune) bool { return !r.allows(c) }) < 0
}

func (r NameRule) allows(c rune) bool {
	return c < 0x80 && (isLetter(byte(c)) || c >= '0' && c <= '9' || c == '-') || strings.ContainsRune(r.Also, c)
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }

// nameDigest is how many hexadecimal digits make a changed name unique.
const nameDigest = 6

// ToolName returns the upstream's name of a client's tool: the name itself if the rule permits it. The prompt records changed names, so
// that the answer can have the client's names.
func (p *Prompt) ToolName(name string, rule NameRule) string {
	if rule.Fits(name) {
		return name
	}
	kept := strings.Map(func(c rune) rune {
		if rule.allows(c) {
			return c
		}
		return -1
	}, name)
	if rule.Letter && (kept == "" || !isLetter(kept[0])) {
		kept = "_" + kept
	}
	sum := sha256.Sum256([]byte(name))
	sent := kept[:min(len(kept), rule.Max-nameDigest-1)] + "_" + hex.EncodeToString(sum[:])[:nameDigest]
	if p.Renamed == nil {
		p.Renamed = make(map[string]string)
	}
	p.Renamed[sent] = name
	return sent
}

// base62 are the characters of ids that the gateway makes.
const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// callDigits is how many of them follow "call_": 131 bits.
const callDigits = 22

// CallID returns the upstream's id of a client's tool call, in the call and in the result: the id itself if fits accepts it.
func CallID(id string, fits func(id string) bool) string {
	if fits(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	n, digits := new(big.Int).SetBytes(sum[:]), make([]byte, callDigits)
	for i := range digits {
		rest := new(big.Int)
		n.DivMod(n, big.NewInt(int64(len(base62))), rest)
		digits[i] = base62[rest.Int64()]
	}
	return "call_" + string(digits)
}

// maxUser is how long OpenAI's safety_identifier may be, in characters: https://platform.openai.com/docs/api-reference/responses/create.
const maxUser = 64

// WriteUser writes the caller's name for its user, if any, for OpenAI's dialects: a longer one as its hash. That of Claude Code is an
// object of ids as JSON text.
func (p *Prompt) WriteUser(out *Out, loss *Loss) {
	name := p.User.String()
	switch {
	case name == "":
	case utf8.RuneCountInString(name) <= maxUser:
		out.Field("safety_identifier", p.User)
	default:
		sum := sha256.Sum256([]byte(name))
		out.KeyString("safety_identifier", hex.EncodeToString(sum[:]))
		loss.Change(p.Fields[FieldUser])
	}
}

// NewCallID returns an id for a call of an upstream without ids.
func NewCallID() string { return newID("call_", callDigits) }

// NewID returns a random id: the prefix and 24 letters and digits.
func NewID(prefix string) string {
	const digits = 24
	return newID(prefix, digits)
}

func newID(prefix string, digits int) string {
	random := make([]byte, digits)
	_, _ = rand.Read(random) // it never fails
	for i, c := range random {
		random[i] = base62[int(c)%len(base62)] // the bias towards the first eight does not make ids collide
	}
	return prefix + string(random)
}
