package cli

import (
	"fmt"
	"io"
	"strings"

	"modelrelay/providers"
)

// progress shows how far something is. On a terminal it draws a bar over itself, elsewhere it prints a line whenever
// what it says changes, and with a nil writer nothing.
type progress struct {
	out      io.Writer
	terminal bool
	last     string
	drawn    int // characters of the bar on the screen
}

// barWidth is the bar's length in characters.
const barWidth = 28

// show tells that label is percent (0 to 100) done; negative: nobody knows.
func (p *progress) show(label string, percent int, detail string) {
	if p.out == nil {
		return
	}
	text := label
	if percent >= 0 {
		percent = min(percent, 100)
		if p.terminal {
			done := barWidth * percent / 100
			text = strings.Repeat("█", done) + strings.Repeat("░", barWidth-done) + " " + label
		}
		text += fmt.Sprintf(" %3d%%", percent)
	}
	if detail != "" {
		text += "  " + detail
	}
	text = providers.Shown(text) // a vendor's or a client's words are among it
	if text == p.last {
		return
	}
	p.last = text
	if !p.terminal {
		fmt.Fprintln(p.out, text)
		return
	}
	length := len([]rune(text))
	fmt.Fprintf(p.out, "\r%s%s", text, strings.Repeat(" ", max(p.drawn-length, 0)))
	p.drawn = length
}

// end leaves what was shown last on the screen and goes on below it.
func (p *progress) end() {
	if p.drawn > 0 {
		fmt.Fprintln(p.out)
	}
	p.drawn, p.last = 0, ""
}
