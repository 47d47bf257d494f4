package chat

import (
	"slices"
	"strings"
	"unicode/utf8"

	"modelrelay/dev/upstream/script"
)

// Citation is a range of a text that cites a page, in characters and in bytes.
type Citation struct {
	script.Page

	From, To, FromByte, ToByte int
}

// citing is the citation of a page by all of a text.
func citing(text string, page script.Page) Citation {
	return Citation{Page: page, To: utf8.RuneCountInString(text), ToByte: len(text)}
}

// append adds a text behind the part's.
func (p *Part) append(more *Part) {
	characters := utf8.RuneCountInString(p.Text)
	p.Cites = slices.Clone(p.Cites)
	for _, c := range more.Cites {
		c.From, c.To = c.From+characters, c.To+characters
		c.FromByte, c.ToByte = c.FromByte+len(p.Text), c.ToByte+len(p.Text)
		p.Cites = append(p.Cites, c)
	}
	p.words = slices.Concat(p.pieces(), more.pieces())
	p.Text += more.Text
}

func (p *Part) pieces() script.Words {
	if p.words == nil {
		return script.Cut(p.Text)
	}
	return p.words
}

// Joined returns the parts with a text that cites a page and the texts next to it as one, as all vendors but Anthropic say them.
func (r *Reply) Joined() []Part {
	var parts []Part
	for i := range r.Parts {
		p := &r.Parts[i]
		if n := len(parts) - 1; n >= 0 && p.Kind == Text && parts[n].Kind == Text && len(p.Cites)+len(parts[n].Cites) > 0 {
			parts[n].append(p)
			continue
		}
		parts = append(parts, *p)
	}
	return parts
}

// Searched returns the searches and the reply without them, for vendors that have them in no place of their answers.
func (r *Reply) Searched() (searches []script.Search, rest Reply) {
	rest = *r
	rest.Parts = nil
	for i := range r.Parts {
		if p := &r.Parts[i]; p.Search != nil {
			searches = append(searches, *p.Search)
		} else {
			rest.Parts = append(rest.Parts, *p)
		}
	}
	return searches, rest
}

// Cites are the citations in all of the reply's text.
func (r *Reply) Cites() []Citation {
	var text Part
	for i := range r.Parts {
		if p := &r.Parts[i]; p.Kind == Text {
			text.append(p)
		}
	}
	return text.Cites
}

// SearchTool reports whether a type of a tool is that of OpenAI's or Anthropic's search.
func SearchTool(kind string) bool {
	return kind == "web_search" || strings.HasPrefix(kind, "web_search_")
}
