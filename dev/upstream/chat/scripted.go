package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/script"
)

// ReplyTo answers as a script wants it, else plainly.
func ReplyTo(x *fake.Exchange, q Question) Reply {
	a := x.Server.Scripts.Take(script.Ask{
		Vendor: x.Operation.Vendor.Name, Operation: x.Operation.Name, Key: x.Key, Model: x.Model,
		Body: x.Body, Tools: q.Offered, Rounds: q.Rounds,
	})
	if a == nil {
		return q.Reply()
	}
	return q.scripted(a)
}

// scripted makes the reply that a script wants.
func (q *Question) scripted(a *script.Answer) Reply {
	r := Reply{Stop: a.Stop, StopSequence: a.StopSequence, Interleave: a.Interleave, ending: a.Break}
	r.Usage.Input = Tokens(q.All)
	var found []script.Page
	for i := range a.Parts {
		p := q.part(&a.Parts[i], found)
		if p.Search != nil {
			found = append(found, p.Search.Pages...)
		}
		r.Parts = append(r.Parts, p)
		n := pieces(p.Text) + Tokens(len(p.Call.Arguments))
		r.Usage.Output += n
		if p.Kind == Thought {
			r.Usage.Reasoning += n
		}
	}
	if r.Stop == "" {
		r.Stop = StopEnd
		if r.Has(Call) {
			r.Stop = StopCalls
		}
	}
	if a.Usage != nil {
		r.Usage = *a.Usage
	}
	return r
}

func (q *Question) part(p *script.Part, found []script.Page) Part {
	switch {
	case p.Search != nil && !q.Searches:
		return Part{Text: "The script searches; the request offers no search."}
	case p.Search != nil:
		return Part{Kind: Search, Search: p.Search}
	case p.Cited != nil:
		out := q.words(Text, p.Cited.Text)
		if p.Cited.Page < len(found) {
			out.Cites = []Citation{citing(out.Text, found[p.Cited.Page])}
		}
		return out
	case p.Redacted:
		return Part{Kind: Redacted}
	case p.Think != nil:
		return q.words(Thought, p.Think)
	case p.Refusal != nil:
		return q.words(Refusal, p.Refusal)
	case p.Text != nil:
		return q.words(Text, p.Text)
	case p.Call != nil:
		return Part{Kind: Call, Call: q.call(p.Call)}
	}
	names := make([]string, 0, len(p.Any))
	for i := range p.Any {
		if slices.Contains(q.Offered, p.Any[i].Name) {
			return Part{Kind: Call, Call: q.call(&p.Any[i])}
		}
		names = append(names, p.Any[i].Name)
	}
	return Part{Text: fmt.Sprintf("The script calls one of %v; the request offers %v.", names, q.Offered)}
}

func (q *Question) words(kind partKind, words script.Words) Part {
	filled := make(script.Words, len(words))
	for i, w := range words {
		filled[i] = q.Turn.Fill(w)
	}
	return Part{Kind: kind, Text: strings.Join(filled, ""), words: filled}
}

func (q *Question) call(c *script.Call) ToolCall {
	out := ToolCall{ID: c.ID, Name: c.Name, Arguments: "{}"}
	var text string
	switch {
	case len(c.Arguments) == 0:
	case json.Unmarshal(c.Arguments, &text) == nil:
		out.Arguments = q.Turn.Fill(text)
	default:
		var v any
		_ = json.Unmarshal(c.Arguments, &v) // part of a valid document
		b, err := json.Marshal(fill(v, q.Turn))
		if err == nil && bytes.Contains(c.Arguments, []byte("{{")) {
			out.Arguments = string(b)
			break
		}
		out.Arguments = string(c.Arguments)
	}
	return out
}

// fill fills every string of decoded JSON.
func fill(v any, turn script.Turn) any {
	switch v := v.(type) {
	case string:
		return turn.Fill(v)
	case []any:
		for i := range v {
			v[i] = fill(v[i], turn)
		}
	case map[string]any:
		for name := range v {
			v[name] = fill(v[name], turn)
		}
	}
	return v
}

// Name gives the calls that have no id one.
func (r *Reply) Name(prefix string) {
	for i := range r.Parts {
		if p := &r.Parts[i]; p.Kind == Call && p.Call.ID == "" {
			p.Call.ID = prefix + fake.RandomID(24)
		}
	}
}

// Breaks arranges for the answer to break as its script wants; fail writes the vendor's error into a stream. It reports whether the
// answer has ended before it began.
func Breaks(x *fake.Exchange, r *Reply, stream bool, fail func(fake.Problem)) bool {
	b := r.ending
	if b == nil {
		return false
	}
	p := fake.Problem{Status: max(b.Status, http.StatusInternalServerError), Code: b.Code, Message: b.Message}
	if b.Status != 0 {
		p.Status = b.Status
	}
	p.Kind = fake.KindOf(p.Status)
	switch {
	case b.How == "error" && (b.After == 0 || !stream):
		x.Operation.Vendor.Refuse(x, p)
		return true
	case !stream:
		panic(http.ErrAbortHandler)
	}
	x.Ending = &fake.Ending{After: b.After, Act: func() {
		switch b.How {
		case "cut":
			x.Flush() // the head of the answer goes out before the connection goes
			panic(http.ErrAbortHandler)
		case "error":
			fail(p)
		}
	}}
	return false
}
