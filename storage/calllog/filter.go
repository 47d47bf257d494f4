package calllog

import (
	"strconv"
	"strings"
	"time"
)

// Filter selects calls; a zero field selects all.
type Filter struct {
	// Request is the request's id. ID is any id of the call: of the request, client, trace, vendor or task.
	Request, ID string
	// Token is a token's id.
	Token string
	// Channel answered the call, or is the channel of one of its tries.
	Model, Channel, Operation string
	// Fault is a kind of fault; Failed selects all calls with a fault or a status of at least 400.
	Fault  string
	Failed bool
	// Status is a status, or the first digit of a class: 4 is 4xx.
	Status int
	// Slower is the least duration of the call.
	Slower time.Duration
	Stream *bool
	// Since and Until bound the arrival of the call: not before Since, and before Until.
	Since, Until time.Time
}

// classes is the least status; a smaller number is a class.
const classes = 100

// matcher matches lines against a filter without decoding them.
type matcher struct {
	filter Filter
	needs  []string // a line that matches contains all of them
	id     string   // an id as the value of a member
	// answered and tried are a channel as members of the call and of a try; "" for none.
	answered, tried string
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
		m.answered = string(appendText(nil, "channel", f.Channel, nameMost))
		m.tried = string(appendText(nil, "c", f.Channel, nameMost))
	}
	if f.ID != "" {
		m.id = string(appendQuoted([]byte(`":`), f.ID, idMost))
	}
	return m
}

// fits reports whether the filter selects the line's call.
func (m *matcher) fits(line string) bool {
	for _, need := range m.needs {
		if !strings.Contains(line, need) {
			return false
		}
	}
	f := &m.filter
	switch status := numberOf(line, "status"); {
	case m.id != "" && !m.hasID(line):
		return false
	case m.answered != "" && !strings.Contains(line, m.answered) && !strings.Contains(line, m.tried):
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
	at := arrivedAt(line)
	return (f.Since.IsZero() || at >= f.Since.UnixMilli()) && (f.Until.IsZero() || at < f.Until.UnixMilli())
}

// hasID reports whether one of the call's ids is m.id.
func (m *matcher) hasID(line string) bool {
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

// numberOf returns a numeric member of a line, 0 without it.
func numberOf(line, name string) int64 {
	i := strings.Index(line, `,"`+name+`":`)
	if i < 0 {
		return 0
	}
	return leading(line[i+len(name)+len(`,"":`):])
}

// arrivedAt returns the arrival of a line's call, in ms.
func arrivedAt(line string) int64 {
	rest, _ := strings.CutPrefix(line, `{"at":`)
	return leading(rest)
}

// leading parses the number at the beginning of a text.
func leading(text string) int64 {
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || end == 0 && text[end] == '-') {
		end++
	}
	n, _ := strconv.ParseInt(text[:end], 10, 64) // without a number: 0
	return n
}
