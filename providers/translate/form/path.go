package form

import (
	"strconv"
	"strings"
)

// Path is the position of a field in the client's request. The zero Path is none.
type Path struct {
	steps [pathDepth]step
	n     int
}

// pathDepth is the maximum depth of a field: a turn, its result, a block of that, and a member of the block.
const pathDepth = 4

type step struct {
	name  string
	index int // -1 for none
}

// In returns the path of an element of a list at the root.
func In(list string, index int) Path { return Path{}.Item(list, index) }

// Item returns the path of an element of a list below p.
func (p Path) Item(list string, index int) Path {
	if p.n < pathDepth {
		p.steps[p.n] = step{list, index}
		p.n++
	}
	return p
}

// Field returns the path of a member below p.
func (p Path) Field(name string) Path { return p.Item(name, -1) }

// String writes the path with its indices, such as "messages[2].content[1]".
func (p Path) String() string {
	return p.text(func(i int) string { return "[" + strconv.Itoa(i) + "]" })
}

// Name writes the path without indices, such as "messages[].content[]".
func (p Path) Name() string { return p.text(func(int) string { return "[]" }) }

func (p Path) text(index func(int) string) string {
	var text strings.Builder
	for i, s := range p.steps[:p.n] {
		if i > 0 {
			text.WriteByte('.')
		}
		text.WriteString(s.name)
		if s.index >= 0 {
			text.WriteString(index(s.index))
		}
	}
	return text.String()
}
