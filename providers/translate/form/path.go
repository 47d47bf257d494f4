package form

import (
	"strconv"
	"strings"
)

// Path is where something is in the client's request. The zero Path is nowhere.
type Path struct {
	steps [pathDepth]step
	n     int
}

// pathDepth is how deep a field can stand: a block of a result of a turn, and a member of it.
const pathDepth = 4

type step struct {
	name  string
	index int // -1 for none
}

// In is the path of an element of a list at the root.
func In(list string, index int) Path { return Path{}.Item(list, index) }

// Item is the path of an element of a list below.
func (p Path) Item(list string, index int) Path {
	if p.n < pathDepth {
		p.steps[p.n] = step{list, index}
		p.n++
	}
	return p
}

// Field is the path of a member below.
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
