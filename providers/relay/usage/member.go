package usage

import (
	"strings"

	"modelrelay/providers"
)

// counter is a slot of a skimmed document.
type counter int

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
	// counts names the counters that the number adds to.
	counts  [counters]bool
	content bool
	answer  bool // a text there names the answer
	made    bool // a text there names something else that the answer made
	each    bool // an array, whose objects are read as one
	// items: the array's items count. lists and named, of a root: some member's do, or names the answer.
	items, lists, named bool
	children            []*member
}

// newMember builds the tree of a shape's paths; nil for the zero shape.
func newMember(shape providers.UsageShape) *member {
	root := new(member)
	for counter, paths := range map[counter][]string{
		inputCounter: shape.Input, cachedCounter: shape.Cached, outputCounter: shape.Output, audioCounter: shape.Seconds,
	} {
		for _, path := range paths {
			root.at(path).counts[counter] = true
		}
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
