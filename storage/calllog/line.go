package calllog

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// A line is a record as JSON, which Redis and the history store and readers scan. Zero members are absent. A text cannot contain the
// beginning of a member, since quotes in it are escaped, so readers may search for bytes.

// appendOpen appends a record's line without the number of skipped calls and the end. It retains nothing of the record.
func (r *Record) appendOpen(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"at":`...), r.At.UnixMilli(), 10)
	b = appendText(b, "id", r.ID, idMost)
	b = appendText(b, "client", r.Client, idMost)
	b = appendText(b, "trace", r.Trace, idMost)
	b = appendText(b, "vendor", r.VendorID(), idMost)
	b = appendText(b, "task", r.Task, idMost)
	b = appendText(b, "token", r.Token, nameMost)
	if r.TokenName != r.Token {
		b = appendText(b, "name", r.TokenName, nameMost)
	}
	b = appendText(b, "operation", r.Operation, nameMost)
	b = appendText(b, "format", r.Format, nameMost)
	b = appendText(b, "model", r.Model, nameMost)
	b = appendText(b, "channel", r.Channel, nameMost)
	b = appendNumber(b, "status", int64(r.Status))
	b = appendText(b, "fault", r.Fault, nameMost)
	b = appendText(b, "words", r.Words, wordsMost)
	b = appendText(b, "code", r.Code, idMost)
	b = appendNumber(b, "before_us", r.Before.Microseconds())
	b = appendNumber(b, "first_ms", upMS(r.First))
	b = appendNumber(b, "ms", upMS(r.Took))
	b = appendNumber(b, "input", r.Input)
	b = appendNumber(b, "cached", r.Cached)
	b = appendNumber(b, "output", r.Output)
	b = appendNumber(b, "images", r.Images)
	b = appendNumber(b, "audio_ms", r.Audio.Milliseconds())
	b = appendNumber(b, "cost", r.Cost)
	b = appendFlag(b, "priced", r.Priced)
	b = appendFlag(b, "estimated", r.Estimated)
	b = appendFlag(b, "stream", r.Stream)
	b = appendNumber(b, "bytes", r.Bytes)
	b = appendText(b, "agent", r.Agent, agentMost)
	return r.appendTries(b)
}

// appendTries appends the tries: of too many, the first triesMost-1 and the last.
func (r *Record) appendTries(b []byte) []byte {
	if len(r.Tries) == 0 {
		return b
	}
	b = append(appendName(b, "tries"), '[')
	for i := range r.Tries {
		if i >= triesMost-1 && i < len(r.Tries)-1 {
			continue
		}
		t := &r.Tries[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"t":`...), t.Took.Milliseconds(), 10)
		b = appendText(b, "c", t.Channel, nameMost)
		b = appendText(b, "k", t.Key, idMost)
		b = appendText(b, "f", t.Fault, nameMost)
		b = append(appendText(b, "v", t.Vendor, idMost), '}')
	}
	return append(b, ']')
}

// appendEnd appends the end of a line.
func appendEnd(b []byte, skipped int64) []byte {
	return append(appendNumber(b, "skipped", skipped), '}', '\n')
}

// upMS converts a duration into ms, rounded up: 0 means that it is absent.
func upMS(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

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
	return appendQuoted(appendName(b, name), text, most)
}

// appendQuoted appends at most so many bytes of a text as JSON. Invalid UTF-8 becomes U+FFFD.
func appendQuoted(b []byte, text string, most int) []byte {
	b, _ = jsontext.AppendQuote(b, text[:min(len(text), most)]) // the error reports invalid UTF-8
	return b
}

// line decodes a line: its members are the fields of Record in lower case, except those that are declared here.
type line struct {
	Record

	At        int64 `json:"at"` // ms
	BeforeUS  int64 `json:"before_us"`
	FirstMS   int64 `json:"first_ms"`
	MS        int64 `json:"ms"`
	AudioMS   int64 `json:"audio_ms"`
	Stream    int   `json:"stream"`
	Priced    int   `json:"priced"`
	Estimated int   `json:"estimated"`
	Tries     []struct {
		MS      int64  `json:"t"`
		Channel string `json:"c"`
		Key     string `json:"k"`
		Fault   string `json:"f"`
		Vendor  string `json:"v"`
	} `json:"tries"`
}

func parse(text string) (Record, error) {
	var l line
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return Record{}, err
	}
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	r := l.Record
	r.At, r.TokenName = time.UnixMilli(l.At).UTC(), cmp.Or(r.TokenName, r.Token)
	r.Times = Times{Before: time.Duration(l.BeforeUS) * time.Microsecond, First: ms(l.FirstMS), Took: ms(l.MS)}
	r.Audio, r.Stream, r.Priced, r.Estimated = ms(l.AudioMS), l.Stream != 0, l.Priced != 0, l.Estimated != 0
	for _, t := range l.Tries {
		r.Tries = append(r.Tries, Try{Channel: t.Channel, Key: t.Key, Fault: t.Fault, Vendor: t.Vendor, Took: ms(t.MS)})
	}
	return r, nil
}
