package usage

import (
	"strings"

	"modelrelay/providers"
)

// counter is something that an answer counts. It is the sum of its slots, each of which is one member of the usage under whatever name.
type counter = int

// maxSlots bounds the slots of a shape.
const maxSlots = 12

const (
	inputCounter counter = iota
	cachedCounter
	outputCounter
	audioCounter // ms
	counters
)

// member is an object member on the way to something a document looks for.
type member struct {
	name string
	// slots are those that the number goes to.
	slots   []int
	content bool
	answer  bool // a text there names the answer
	made    bool // a text there names something else that the answer made
	each    bool // an array, whose objects are read as one
	// items: the array's items count. lists and named, of a root: some member's do, or names the answer.
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
		panic("usage: a shape counts too much") // of the vendors' tables alone
	}
	for _, path := range shape.Answer {
		root.at(path).answer = true
		root.named = true
	}
	for _, path := range shape.Made {
		root.at(path).made = true
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

// at returns the member at a path, which it makes.
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
