package calllog

import (
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// A line is a record as JSON. Members that say nothing are absent. A text cannot hold what begins a member, since a quote in one is
// escaped: a reader may look for bytes.

func appendName(b []byte, name string) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

func appendNumber(b []byte, name string, n int64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(appendName(b, name), n, 10)
}

func appendFlag(b []byte, name string, yes bool) []byte {
	if !yes {
		return b
	}
	return append(appendName(b, name), '1')
}

func appendText(b []byte, name, text string, most int) []byte {
	if text == "" {
		return b
	}
	b = append(appendName(b, name), '"')
	b = appendEscaped(b, text, most)
	return append(b, '"')
}

// appendEscaped writes a text of at most so many bytes as JSON has it within quotes. What is no UTF-8 becomes U+FFFD.
func appendEscaped(b []byte, text string, most int) []byte {
	const digits = "0123456789abcdef"
	text = text[:min(len(text), most)]
	plain := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(text[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		b = append(b, text[plain:i]...)
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= utf8.RuneSelf:
			b = append(b, "\ufffd"...)
		default:
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
		i += size
		plain = i
	}
	return append(b, text[plain:]...)
}

// line is a line as it is read.
type line struct {
	At        int64  `json:"at"` // ms
	ID        string `json:"id"`
	Client    string `json:"client"`
	Trace     string `json:"trace"`
	Task      string `json:"task"`
	Token     string `json:"token"`
	Name      string `json:"name"`
	Operation string `json:"operation"`
	Format    string `json:"format"`
	Model     string `json:"model"`
	Channel   string `json:"channel"`
	lineOutcome
	lineUsed
}

type lineOutcome struct {
	Status   int    `json:"status"`
	Fault    string `json:"fault"`
	Words    string `json:"words"`
	Code     string `json:"code"`
	BeforeUS int64  `json:"before_us"`
	FirstMS  int64  `json:"first_ms"`
	MS       int64  `json:"ms"`
	Bytes    int64  `json:"bytes"`
	Stream   int    `json:"stream"`
	Agent    string `json:"agent"`
	Tries    []struct {
		MS      int64  `json:"t"`
		Channel string `json:"c"`
		Key     string `json:"k"`
		Fault   string `json:"f"`
		Vendor  string `json:"v"`
	} `json:"tries"`
	Skipped int64 `json:"skipped"`
}

type lineUsed struct {
	Input     int64 `json:"input"`
	Cached    int64 `json:"cached"`
	Output    int64 `json:"output"`
	Images    int64 `json:"images"`
	AudioMS   int64 `json:"audio_ms"`
	Cost      int64 `json:"cost"`
	Priced    int   `json:"priced"`
	Estimated int   `json:"estimated"`
}

// parse reads a line.
func parse(text string) (Record, error) {
	var l line
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return Record{}, err
	}
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	r := Record{
		At:     time.UnixMilli(l.At).UTC(),
		Names:  Names{ID: l.ID, Client: l.Client, Trace: l.Trace, Task: l.Task},
		Caller: Caller{Token: l.Token, TokenName: l.Name, Agent: l.Agent},
		Asked:  Asked{Operation: l.Operation, Format: l.Format, Model: l.Model, Stream: l.Stream != 0},
		Outcome: Outcome{
			Channel: l.Channel, Status: l.Status, Fault: l.Fault, Words: l.Words, Code: l.Code, Bytes: l.Bytes,
		},
		Times: Times{Before: time.Duration(l.BeforeUS) * time.Microsecond, First: ms(l.FirstMS), Took: ms(l.MS)},
		Used: Used{
			Input: l.Input, Cached: l.Cached, Output: l.Output, Images: l.Images, Audio: ms(l.AudioMS), Cost: l.Cost,
			Priced: l.Priced != 0, Estimated: l.Estimated != 0,
		},
		Skipped: l.Skipped,
	}
	if r.TokenName == "" {
		r.TokenName = r.Token
	}
	for _, t := range l.Tries {
		r.Tries = append(r.Tries, Try{Channel: t.Channel, Key: t.Key, Fault: t.Fault, Vendor: t.Vendor, Took: ms(t.MS)})
	}
	return r, nil
}
