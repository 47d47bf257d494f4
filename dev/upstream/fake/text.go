package fake

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendQuoted appends s as a JSON string. Streams write one per event, so it allocates nothing.
func AppendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, s[start:i]...), `\ufffd`...)
				start = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

// RandomID returns n random hex digits, as vendors' ids have them; n is even.
func RandomID(n int) string {
	var b [32]byte
	_, _ = rand.Read(b[:n/2]) // never fails
	return hex.EncodeToString(b[:n/2])
}

// RandomUUID returns a random id in the form of a UUID.
func RandomUUID() string {
	id := RandomID(32)
	return strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-")
}

// RandomNumber returns a random number of that many digits, at most 19, which fits into an int64.
func RandomNumber(digits int) string {
	var b [19]byte
	_, _ = rand.Read(b[:]) // never fails
	for i := range b {
		b[i] = '0' + b[i]%10
	}
	b[0] = '1' + (b[0]-'0')%8
	return string(b[:digits])
}

// RandomWord returns n random lower-case letters and digits, at most 32.
func RandomWord(n int) string {
	var b [20]byte
	_, _ = rand.Read(b[:]) // never fails
	return base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding).EncodeToString(b[:])[:n]
}
