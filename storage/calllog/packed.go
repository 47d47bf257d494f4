package calllog

import (
	"strconv"
	"strings"
	"time"
)

// A record stands in Redis packed: when it came, then its members. A member is one byte that says which it is, and its value up
// to the next such byte: a text as JSON has it within quotes, in which none of these bytes can be, or a number as digits of six
// bits. Members that say nothing are absent. It is unpacked into a line of JSON, which is what readers look at and what the
// history keeps.
//
// The bytes never change their meaning: logs of several versions stand in one stream.
const (
	packID byte = iota + 1
	packTrace
	packVendor // where the last try does not say it
	packTask
	packToken
	packName
	packOperation
	packFormat
	packModel
	packChannel
	packStatus
	packFault
	packWords
	packCode
	packBefore
	packFirst
	packTook
	packInput
	packCached
	packOutput
	packImages
	packAudio
	packCost
	packFlags
	packBytes
	packAgent
	packSkipped
	packClient
)

// A try is a number, how long it took, and members of its own.
const (
	packTry        byte = iota + 0xF8 // no byte of a text in UTF-8
	packTryChannel                    // without a value: the channel that answered
	packTryKey
	packTryFault
	packTryVendor
)

// Flags of a record.
const (
	flagPriced = 1 << iota
	flagEstimated
	flagStream
)

// members are what a packed member is called in a line.
var members = [...]struct { //nolint:gochecknoglobals // a table
	name string
	text bool
}{
	packID: {"id", true}, packTrace: {"trace", true}, packVendor: {"vendor", true}, packTask: {"task", true},
	packToken: {"token", true}, packName: {"name", true}, packOperation: {"operation", true}, packFormat: {"format", true},
	packModel: {"model", true}, packChannel: {"channel", true}, packStatus: {"status", false}, packFault: {"fault", true},
	packWords: {"words", true}, packCode: {"code", true}, packBefore: {"before_us", false}, packFirst: {"first_ms", false},
	packTook: {"ms", false}, packInput: {"input", false}, packCached: {"cached", false}, packOutput: {"output", false},
	packImages: {"images", false}, packAudio: {"audio_ms", false}, packCost: {"cost", false}, packFlags: {}, packBytes: {"bytes", false},
	packAgent: {"agent", true}, packSkipped: {"skipped", false}, packClient: {"client", true},
	packTry: {"t", false}, packTryChannel: {"c", true}, packTryKey: {"k", true}, packTryFault: {"f", true}, packTryVendor: {"v", true},
}

// pack writes the record, so that nothing of it is kept, and without what it stands for beside its own call.
func (r *Record) pack(b []byte) []byte {
	b = packDigits(b, r.At.UnixMilli())
	b = packText(b, packID, r.ID, idMost)
	b = packText(b, packClient, r.Client, idMost)
	b = packText(b, packTrace, r.Trace, idMost)
	if n := len(r.Tries); n > 0 && r.Tries[n-1].Vendor == "" {
		b = packText(b, packVendor, r.VendorID(), idMost)
	}
	b = packText(b, packTask, r.Task, idMost)
	b = packText(b, packToken, r.Token, nameMost)
	if r.TokenName != r.Token {
		b = packText(b, packName, r.TokenName, nameMost)
	}
	b = packText(b, packOperation, r.Operation, nameMost)
	b = packText(b, packFormat, r.Format, nameMost)
	b = packText(b, packModel, r.Model, nameMost)
	b = packText(b, packChannel, r.Channel, nameMost)
	b = packNumber(b, packStatus, int64(r.Status))
	b = packText(b, packFault, r.Fault, nameMost)
	b = packText(b, packWords, r.Words, wordsMost)
	b = packText(b, packCode, r.Code, idMost)
	b = packNumber(b, packBefore, r.Before.Microseconds())
	b = packNumber(b, packFirst, upMS(r.First))
	b = packNumber(b, packTook, upMS(r.Took))
	b = packNumber(b, packInput, r.Input)
	b = packNumber(b, packCached, r.Cached)
	b = packNumber(b, packOutput, r.Output)
	b = packNumber(b, packImages, r.Images)
	b = packNumber(b, packAudio, r.Audio.Milliseconds())
	b = packNumber(b, packCost, r.Cost)
	b = packNumber(b, packFlags, r.flags())
	b = packNumber(b, packBytes, r.Bytes)
	b = packText(b, packAgent, r.Agent, agentMost)
	return r.packTries(b)
}

func (r *Record) flags() (flags int64) {
	if r.Priced {
		flags |= flagPriced
	}
	if r.Estimated {
		flags |= flagEstimated
	}
	if r.Stream {
		flags |= flagStream
	}
	return flags
}

// upMS is a duration in ms, rounded up: what happened took time.
func upMS(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// packTries writes the tries: the first, and of too many the last.
func (r *Record) packTries(b []byte) []byte {
	for i := range r.Tries {
		if i >= triesMost-1 && i < len(r.Tries)-1 {
			continue
		}
		t := &r.Tries[i]
		b = packDigits(append(b, packTry), t.Took.Milliseconds())
		if t.Channel != "" && t.Channel == r.Channel {
			b = append(b, packTryChannel)
		} else {
			b = packText(b, packTryChannel, t.Channel, nameMost)
		}
		b = packText(b, packTryKey, t.Key, idMost)
		b = packText(b, packTryFault, t.Fault, nameMost)
		b = packText(b, packTryVendor, t.Vendor, idMost)
	}
	return b
}

func packText(b []byte, member byte, text string, most int) []byte {
	if text == "" {
		return b
	}
	return appendEscaped(append(b, member), text, most)
}

func packNumber(b []byte, member byte, n int64) []byte {
	if n == 0 {
		return b
	}
	return packDigits(append(b, member), n)
}

// A digit is one of the 64 bytes from digitBase on.
const (
	digitBase = '@'
	digitBits = 6
	digitMask = 1<<digitBits - 1
)

// packDigits writes a number, the highest digit first.
func packDigits(b []byte, n int64) []byte {
	if n < 0 {
		b, n = append(b, '-'), -n
	}
	high := 0
	for n>>high > digitMask {
		high += digitBits
	}
	for ; high >= 0; high -= digitBits {
		b = append(b, digitBase+byte(n>>high&digitMask))
	}
	return b
}

// unpackDigits reads a number; false: it is none.
func unpackDigits(text string) (n int64, ok bool) {
	text, negative := strings.CutPrefix(text, "-")
	for i := range len(text) {
		digit := text[i] - digitBase
		if digit > digitMask {
			return 0, false
		}
		n = n<<digitBits | int64(digit)
	}
	if negative {
		n = -n
	}
	return n, text != ""
}

// endsValue tells whether a byte begins a member.
func endsValue(c byte) bool { return c < ' ' || c >= packTry }

// value is what a packed text has before its next member.
func value(packed string) (value, rest string) {
	for i := range len(packed) {
		if endsValue(packed[i]) {
			return packed[:i], packed[i:]
		}
	}
	return packed, ""
}

// unpack writes the line of a packed record without its end. ok is false where it is none of ours.
func unpack(b []byte, packed string) (line []byte, ok bool) {
	u := unpacking{line: append(b, `{"at":`...)}
	text, rest := value(packed)
	if !u.number(text) {
		return b, false
	}
	for rest != "" {
		member := rest[0]
		text, rest = value(rest[1:])
		if !u.member(member, text) {
			return b, false
		}
	}
	u.endTries()
	return u.line, true
}

// unpacking is a line under way.
type unpacking struct {
	line    []byte
	tries   bool   // a try is open
	channel string // that answered
	vendor  string // of the last try
}

func (u *unpacking) number(text string) bool {
	n, ok := unpackDigits(text)
	u.line = strconv.AppendInt(u.line, n, 10)
	return ok
}

func (u *unpacking) member(member byte, text string) bool {
	if int(member) >= len(members) { // of a newer version
		return true
	}
	switch member {
	case packFlags:
		flags, ok := unpackDigits(text)
		u.line = appendFlag(u.line, "priced", flags&flagPriced != 0)
		u.line = appendFlag(u.line, "estimated", flags&flagEstimated != 0)
		u.line = appendFlag(u.line, "stream", flags&flagStream != 0)
		return ok
	case packTry:
		if u.tries {
			u.line = append(u.line, `},{"t":`...)
		} else {
			u.line = append(u.line, `,"tries":[{"t":`...)
		}
		u.tries, u.vendor = true, ""
		return u.number(text)
	case packChannel:
		u.channel = text
	case packTryChannel:
		if text == "" {
			text = u.channel
		}
	case packTryVendor:
		u.vendor = text
	case packSkipped:
		u.endTries()
	}
	m := &members[member]
	if m.name == "" {
		return true
	}
	u.line = appendName(u.line, m.name)
	if !m.text {
		return u.number(text)
	}
	u.line = append(append(append(u.line, '"'), text...), '"')
	return true
}

// endTries closes the tries.
func (u *unpacking) endTries() {
	if !u.tries {
		return
	}
	u.tries = false
	u.line = append(u.line, "}]"...)
	if u.vendor != "" {
		u.line = append(append(appendName(u.line, "vendor"), '"'), u.vendor...)
		u.line = append(u.line, '"')
	}
}
