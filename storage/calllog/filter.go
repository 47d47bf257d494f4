package calllog

import (
	"strconv"
	"strings"
	"time"
)

// Filter selects calls; a zero field selects all.
type Filter struct {
	// Request is the request's id. ID is any id of the call: the request's, the client's own, its trace's, a vendor's, or its task's.
	Request, ID string
	// Token is a token's id.
	Token string
	// Channel is one that answered, or was asked and did not.
	Model, Channel, Operation string
	// Fault is a kind of fault; Failed selects all that have one, or a status of 400 and more.
	Fault  string
	Failed bool
	// Status is one, or the hundreds of a class: 4 and 5 are 4xx and 5xx.
	Status int
	// Slower is how long the call took at least.
	Slower time.Duration
	Stream *bool
	// Since and Until bound when the call came: not before Since, and before Until.
	Since, Until time.Time
}

// classes are below the least status.
const classes = 100

// matcher looks for a filter in lines without decoding them.
type matcher struct {
	filter Filter
	needs  []string // each is in a line that matches
	id     string   // quoted, as any of the ids stands
	// asked and tried are a channel as the one that answered and as one among the tries; "" for none.
	asked, tried string
}

func (f Filter) matcher() matcher {
	m := matcher{filter: f}
	for _, member := range [...]struct{ name, value string }{
		{"id", f.Request}, {"token", f.Token}, {"model", f.Model}, {"operation", f.Operation}, {"fault", f.Fault},
	} {
		if member.value != "" {
			m.needs = append(m.needs, string(appendText(nil, member.name, member.value, nameMost)))
		}
	}
	if f.Stream != nil && *f.Stream {
		m.needs = append(m.needs, string(appendFlag(nil, "stream", true)))
	}
	if f.Channel != "" {
		m.asked = string(appendText(nil, "channel", f.Channel, nameMost))
		m.tried = string(appendText(nil, "c", f.Channel, nameMost))
	}
	if f.ID != "" {
		m.id = string(appendQuoted([]byte(`":`), f.ID, idMost))
	}
	return m
}

// fits reports whether a line is of a call that the filter selects.
func (m *matcher) fits(line string) bool {
	for _, need := range m.needs {
		if !strings.Contains(line, need) {
			return false
		}
	}
	f := &m.filter
	switch status := numberOf(line, "status"); {
	case m.id != "" && !m.named(line):
		return false
	case m.asked != "" && !strings.Contains(line, m.asked) && !strings.Contains(line, m.tried):
		return false
	case f.Stream != nil && !*f.Stream && numberOf(line, "stream") != 0:
		return false
	case f.Status >= classes && status != int64(f.Status), 0 < f.Status && f.Status < classes && status/100 != int64(f.Status):
		return false
	case f.Failed && status < failedStatus && !strings.Contains(line, `,"fault":`):
		return false
	case f.Slower > 0 && numberOf(line, "ms") < f.Slower.Milliseconds():
		return false
	}
	at := cameAt(line)
	return (f.Since.IsZero() || at >= f.Since.UnixMilli()) && (f.Until.IsZero() || at < f.Until.UnixMilli())
}

// named reports whether one of the call's ids is the one that is searched.
func (m *matcher) named(line string) bool {
	for rest := line; ; {
		i := strings.Index(rest, m.id)
		if i < 0 {
			return false
		}
		before := rest[:i]
		for _, name := range [...]string{`,"id`, `,"client`, `,"trace`, `,"vendor`, `,"task`, `,"v`} {
			if strings.HasSuffix(before, name) {
				return true
			}
		}
		rest = rest[i+1:]
	}
}

// numberOf is the number of a line's member, 0 where it has none.
func numberOf(line, name string) int64 {
	i := strings.Index(line, `,"`+name+`":`)
	if i < 0 {
		return 0
	}
	return leading(line[i+len(name)+len(`,"":`):])
}

// cameAt is when a line's call came, in ms.
func cameAt(line string) int64 {
	rest, _ := strings.CutPrefix(line, `{"at":`)
	return leading(rest)
}

// leading is the number that a text begins with.
func leading(text string) int64 {
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || end == 0 && text[end] == '-') {
		end++
	}
	n, _ := strconv.ParseInt(text[:end], 10, 64) // ours is a number
	return n
}
