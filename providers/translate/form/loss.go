package form

import (
	"slices"
	"strconv"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// Loss lists the fields that a translation lost, by the client's own names without indices. The zero Loss is none.
type Loss struct {
	// Dropped are fields without effect, Changed those that were sent with another value or form.
	Dropped, Changed []string
	// dropped and changed are the same as sets, if there are many.
	dropped, changed nameSet
}

// Drop records a field that has no effect.
func (l *Loss) Drop(field string) { l.Dropped = l.dropped.add(l.Dropped, field) }

// DropUnknown records a field that no dialect has, unless its value has no effect.
func (l *Loss) DropUnknown(field string, value rawjson.Value) {
	if value.IsSet() {
		l.Drop(field)
	}
}

// DropOthers is DropUnknown of the members of an object at a path, except the known ones.
func (l *Loss) DropOthers(at Path, object rawjson.Object, known ...string) {
	for _, member := range object {
		if !slices.ContainsFunc(known, member.Name.Is) {
			l.DropUnknown(at.Field(member.Name.String()).Name(), member.Value)
		}
	}
}

// Change records a field that is sent with another value or form.
func (l *Loss) Change(field string) { l.Changed = l.changed.add(l.Changed, field) }

// Unchange reverts Change.
func (l *Loss) Unchange(field string) {
	l.Changed, l.changed = slices.DeleteFunc(l.Changed, func(name string) bool { return name == field }), nil
}

// nameSet is the set of a list's names. A client may invent thousands of them.
type nameSet map[string]bool

// add appends a name to the list unless the list has it.
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

// maxNamed bounds the number of names in a header, maxName the length of each in bytes.
const (
	maxNamed = 20
	maxName  = 100
)

// Listed writes names for a header: at most maxNamed, then the number of further ones, with the characters of field names only.
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

// RefuseOwn refuses fields that only the client's vendor has and that must not be omitted. taken are the fields that the target accepts if
// it is the other dialect of the same vendor.
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

// DropOwn records the fields that only the client's vendor has as dropped, and refuses those that must not be omitted.
func (p *Prompt) DropOwn(to Dialect, loss *Loss) *providers.Fault {
	if fault := p.RefuseOwn(to); fault != nil {
		return fault
	}
	for _, own := range p.Own {
		loss.Drop(own.Name)
	}
	return nil
}
