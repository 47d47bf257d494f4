package form

import (
	"slices"
	"strconv"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// Loss is what a call lost on its way, in the client's own names without indices. The zero Loss is none.
type Loss struct {
	// Dropped are fields that had no effect, Changed those that were sent with another value or form.
	Dropped, Changed []string
	// dropped and changed are the same as sets, once there are many.
	dropped, changed nameSet
}

// Drop notes a field that has no effect.
func (l *Loss) Drop(field string) { l.Dropped = l.dropped.add(l.Dropped, field) }

// DropUnknown notes a field that no dialect knows, unless its value means nothing.
func (l *Loss) DropUnknown(field string, value rawjson.Value) {
	if value.Says() {
		l.Drop(field)
	}
}

// Change notes a field that is sent with another value or form.
func (l *Loss) Change(field string) { l.Changed = l.changed.add(l.Changed, field) }

// Unchange takes back that a field is sent with another value or form.
func (l *Loss) Unchange(field string) {
	l.Changed, l.changed = slices.DeleteFunc(l.Changed, func(name string) bool { return name == field }), nil
}

// nameSet are the names of a list. A client may make up thousands of them.
type nameSet map[string]bool

// add appends a name to the list, unless it has it.
func (s *nameSet) add(names []string, field string) []string {
	field = field[:min(len(field), maxName)]
	if field == "" {
		return names
	}
	if len(names) <= maxNamed {
		if slices.Contains(names, field) {
			return names
		}
		return append(names, field)
	}
	if len(*s) != len(names) {
		*s = make(nameSet, 2*len(names))
		for _, name := range names {
			(*s)[name] = true
		}
	}
	if (*s)[field] {
		return names
	}
	(*s)[field] = true
	return append(names, field)
}

// maxNamed bounds the names in a header, maxName the length of each in bytes.
const (
	maxNamed = 20
	maxName  = 100
)

// Listed writes names for a header: at most maxNamed, then how many more there are. What a client made up in names is not
// repeated beyond the letters of a field's name.
func Listed(names []string) string {
	shown := names[:min(len(names), maxNamed)]
	list := strings.Join(shown, ", ")
	if more := len(names) - len(shown); more > 0 {
		list += ", +" + strconv.Itoa(more)
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, list)
}

// RefuseOwn refuses what only the client's vendor knows and must not be left out. taken are members that the target takes where it is
// the same vendor's other dialect.
func (p *Prompt) RefuseOwn(to Dialect, taken ...string) *providers.Fault {
	for _, own := range p.Own {
		if own.Must && (!p.From.SameVendor(to) || !slices.Contains(taken, own.Name)) {
			if own.Tool != "" {
				return Refusedf(own.Name, to, "which does not have the tool %s.", own.Tool)
			}
			return Refused(own.Name, to)
		}
	}
	return nil
}

// DropOwn notes the fields that only the client's vendor knows, and refuses those that must not be left out.
func (p *Prompt) DropOwn(to Dialect, loss *Loss) *providers.Fault {
	if fault := p.RefuseOwn(to); fault != nil {
		return fault
	}
	for _, own := range p.Own {
		loss.Drop(own.Name)
	}
	return nil
}
