package form

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"math/big"
	"strings"
	"unicode/utf8"

	"modelrelay/providers/rawjson"
)

// NameRule is what an upstream takes as the name of a tool: letters, digits, "_" and "-".
type NameRule struct {
	// Max is how long it may be.
	Max int
	// Also are further characters that it may have.
	Also string
	// Letter: it begins with a letter or "_".
	Letter bool
}

// Fits reports whether the rule takes a name.
func (r NameRule) Fits(name string) bool {
	return name != "" && len(name) <= r.Max && (!r.Letter || isLetter(name[0])) &&
		strings.IndexFunc(name, func(c rune) bool { return !r.allows(c) }) < 0
}

func (r NameRule) allows(c rune) bool {
	return c < 0x80 && (isLetter(byte(c)) || c >= '0' && c <= '9' || c == '-') || strings.ContainsRune(r.Also, c)
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }

// nameDigest is how many hexadecimal digits make a changed name its own.
const nameDigest = 6

// ToolName is the name under which an upstream gets a tool of the client's: the name itself where the rule takes it. The
// prompt remembers what it changed, so that the answer can be given under the client's names.
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

// base62 are the characters of ids of ours.
const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// callDigits is how many of them follow "call_": 131 bits.
const callDigits = 22

// CallID is the id under which an upstream gets a call of the client's, in call and result alike: the id itself where fits
// takes it.
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

// UserID is the caller's name for its user, as OpenAI takes it; false: a longer one, which is hashed. Claude
// Code's is an object of ids as JSON text.
func UserID(user rawjson.Text) (rawjson.Text, bool) {
	name := user.String()
	if utf8.RuneCountInString(name) <= maxUser {
		return user, true
	}
	sum := sha256.Sum256([]byte(name))
	return rawjson.Quote(hex.EncodeToString(sum[:])), false
}

// NewCallID makes an id for a call of an upstream that gives none.
func NewCallID() string { return newID("call_", callDigits) }

// NewID makes a random id: the prefix and 24 letters and digits.
func NewID(prefix string) string {
	const digits = 24
	return newID(prefix, digits)
}

func newID(prefix string, digits int) string {
	random := make([]byte, digits)
	_, _ = rand.Read(random) // it never fails
	for i, c := range random {
		random[i] = base62[int(c)%len(base62)] // the bias towards the first eight takes nothing from an id's being its own
	}
	return prefix + string(random)
}
