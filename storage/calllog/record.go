// Package calllog is the log of requests: what was asked of whom, how it went and what it cost, never what was said. The newest
// calls stand in a stream of Redis, which readers filter by looking for bytes.
package calllog

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// Record is one call, conversation or create of a task that is over, or was refused.
type Record struct {
	// At is when it came.
	At time.Time
	Names
	Caller
	Asked
	Outcome
	Times
	Used
	// Tries are the requests to upstreams that it took, in their order.
	Tries []Try
	// Skipped are calls like this one, refused within the same second, that have no record of their own.
	Skipped int64
}

// Names are the ids by which a call is found.
type Names struct {
	ID string // the request's
	// Trace is its trace's, and Task that of the task that it made; "" for none.
	Trace, Task string
}

// Caller is who called.
type Caller struct {
	Token, TokenName string // id and name; "" where nobody was let in
	Agent            string // User-Agent
}

// Asked is what was asked for.
type Asked struct {
	Operation string // operationId of the OpenAPI document
	Format    string
	Model     string // public name, as the client wrote it
	Stream    bool   // the answer was a stream of events
}

// Outcome is how it ended.
type Outcome struct {
	Channel string // that answered, "" where none did
	Status  int
	// Fault is how it failed, Words what the client was told of it, Code the vendor's own word; "" where there is none.
	Fault, Words, Code string
	Bytes              int64 // of the answer
}

// Times are how long it took.
type Times struct {
	// Before is when the call was handed to an upstream, First when the client was sent the first byte of an upstream's answer,
	// both since the request came; 0 where that did not happen.
	Before, First time.Duration
	Took          time.Duration
}

// Used is what it used and cost.
type Used struct {
	Input, Cached, Output int64 // tokens
	Images                int64
	Audio                 time.Duration
	Cost                  int64 // in billionths of the currency
	// Priced: the model has a price. Estimated: what it used is, since the upstream did not say.
	Priced, Estimated bool
}

// Try is one request to an upstream.
type Try struct {
	Channel string
	Key     string // fingerprint
	Fault   string // "" where its answer began
	// Vendor is what the upstream calls the request, "" where it does not say.
	Vendor string
	Took   time.Duration
}

// VendorID is what the last upstream that said so calls the request, "" for none.
func (r *Record) VendorID() string {
	for _, try := range slices.Backward(r.Tries) {
		if try.Vendor != "" {
			return try.Vendor
		}
	}
	return ""
}

// Failed tells whether the client got a fault.
func (r *Record) Failed() bool { return r.Fault != "" || r.Status >= failedStatus }

const failedStatus = 400

// Bounds of a record's texts, in bytes: what strangers write takes no more of the log than others' calls do.
const (
	agentMost = 80
	wordsMost = 300
	nameMost  = 255
	idMost    = 128
	triesMost = 8
)

// append writes the record as one line of JSON without its end, so that nothing of it is kept. Members that say nothing are
// absent. A text cannot hold what begins a member, since a quote in one is escaped: a reader may look for bytes.
func (r *Record) append(b []byte) []byte {
	b = append(b, `{"at":`...)
	b = strconv.AppendInt(b, r.At.UnixMilli(), 10)
	b = appendText(b, "id", r.ID, idMost)
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
	b = appendNumber(b, "bytes", r.Bytes)
	b = appendFlag(b, "stream", r.Stream)
	b = appendText(b, "agent", r.Agent, agentMost)
	return r.appendTries(b)
}

// upMS is a duration in ms, rounded up: what happened took time.
func upMS(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// appendTries writes the tries: the first, and of too many the last.
func (r *Record) appendTries(b []byte) []byte {
	for i := range r.Tries {
		if i >= triesMost-1 && i < len(r.Tries)-1 {
			continue
		}
		t := &r.Tries[i]
		if i == 0 {
			b = append(b, `,"tries":[{"t":`...)
		} else {
			b = append(b, `,{"t":`...)
		}
		b = strconv.AppendInt(b, t.Took.Milliseconds(), 10)
		b = appendText(b, "c", t.Channel, nameMost)
		b = appendText(b, "k", t.Key, idMost)
		b = appendText(b, "f", t.Fault, nameMost)
		b = appendText(b, "v", t.Vendor, idMost)
		b = append(b, '}')
	}
	if len(r.Tries) > 0 {
		b = append(b, ']')
	}
	return b
}

// end closes a line, which says how many calls it stands for beside its own.
func end(b []byte, skipped int64) []byte { return append(appendNumber(b, "skipped", skipped), '}') }

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

// line is a record as it is written.
type line struct {
	At        int64  `json:"at"` // ms
	ID        string `json:"id"`
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
		Names:  Names{ID: l.ID, Trace: l.Trace, Task: l.Task},
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
