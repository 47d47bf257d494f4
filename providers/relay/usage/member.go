package usage

import (
	"strings"

	"modelrelay/providers"
)

// counter is one number of a usage: the sum of its slots. A slot is one member of the answer, under any of its names.
type counter = int

const maxSlots = 12

const (
	inputCounter counter = iota
	cachedCounter
	outputCounter
	audioCounter // ms
	counters
)

// member is an object member on the path of a counter or an id.
type member struct {
	name string
	// slots receive the member's number.
	slots   []int
	content bool
	answer  bool // its text is the answer's id
	made    bool // its text is the id of something else that the answer made
	media   bool // its text is a media type
	each    bool // it is an array, whose objects are read as one
	// items: the array's items count. Of a root: lists: some member has items; named: some member has the answer's id.
	items, lists, named bool
	children            []*member
	// of, of a root, is the counter that each slot adds to.
	of []counter
}

// newMember builds the tree of a shape's paths; nil for the zero shape.
func newMember(shape providers.UsageShape) *member {
	root := new(member)
	for counter, paths := range [counters][]string{
		inputCounter: shape.Input, cachedCounter: shape.Cached, outputCounter: shape.Output, audioCounter: shape.Seconds,
	} {
		for _, names := range paths {
			slot := len(root.of)
			root.of = append(root.of, counter)
			for path := range strings.SplitSeq(names, "|") {
				at := root.at(path)
				at.slots = append(at.slots, slot)
			}
		}
	}
	if len(root.of) > maxSlots {
		panic("usage: a shape counts too much") // shapes are only in the vendors' tables
	}
	for _, path := range shape.Answer {
		root.at(path).answer = true
		root.named = true
	}
	for _, path := range shape.Created {
		root.at(path).made = true
	}
	for _, path := range shape.MediaTypes {
		root.at(path).media = true
	}
	if shape.Images != "" {
		root.at(shape.Images).items, root.lists = true, true
	}
	if len(root.children) == 0 {
		return nil
	}
	if shape.Content != "" {
		root.at(shape.Content).content = true
	}
	return root
}

// at returns the member at a path, after it has added the missing ones.
func (m *member) at(path string) *member {
	for name := range strings.SplitSeq(path, ".") {
		name, each := strings.CutSuffix(name, "[]")
		child := m.child([]byte(name))
		if child == nil {
			child = &member{name: name}
			m.children = append(m.children, child)
		}
		child.each = child.each || each
		m = child
	}
	return m
}

func (m *member) child(name []byte) *member {
	for _, child := range m.children {
		if child.name == string(name) {
			return child
		}
	}
	return nil
}
