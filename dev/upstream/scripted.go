package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"modelrelay/dev/upstream/script"
)

// reply answers as a script wants it, else plainly.
func (x *exchange) reply(q question) reply {
	a := x.server.scripts.Take(script.Ask{
		Vendor: x.operation.vendor.name, Operation: x.operation.name, Key: x.key, Model: x.model,
		Body: x.body, Tools: q.offered, Rounds: q.rounds,
	})
	if a == nil {
		return q.reply()
	}
	return q.scripted(a)
}

// scripted makes the reply that a script wants.
func (q *question) scripted(a *script.Answer) reply {
	r := reply{stop: a.Stop, stopSequence: a.StopSequence, interleave: a.Interleave, ending: a.Break}
	r.usage.Input = tokens(q.all)
	for i := range a.Parts {
		p := q.part(&a.Parts[i])
		r.parts = append(r.parts, p)
		n := pieces(p.text) + tokens(len(p.call.arguments))
		r.usage.Output += n
		if p.kind == partThought {
			r.usage.Reasoning += n
		}
	}
	if r.stop == "" {
		r.stop = stopEnd
		if r.has(partCall) {
			r.stop = stopCalls
		}
	}
	if a.Usage != nil {
		r.usage = *a.Usage
	}
	return r
}

func (q *question) part(p *script.Part) part {
	switch {
	case p.Redacted:
		return part{kind: partRedacted}
	case p.Think != nil:
		return q.words(partThought, p.Think)
	case p.Refusal != nil:
		return q.words(partRefusal, p.Refusal)
	case p.Text != nil:
		return q.words(partText, p.Text)
	case p.Call != nil:
		return part{kind: partCall, call: q.call(p.Call)}
	}
	names := make([]string, 0, len(p.Any))
	for i := range p.Any {
		if slices.Contains(q.offered, p.Any[i].Name) {
			return part{kind: partCall, call: q.call(&p.Any[i])}
		}
		names = append(names, p.Any[i].Name)
	}
	return part{text: fmt.Sprintf("The script calls one of %v; the request offers %v.", names, q.offered)}
}

func (q *question) words(kind partKind, words script.Words) part {
	filled := make(script.Words, len(words))
	for i, w := range words {
		filled[i] = q.turn.Fill(w)
	}
	return part{kind: kind, text: strings.Join(filled, ""), words: filled}
}

func (q *question) call(c *script.Call) toolCall {
	out := toolCall{id: c.ID, name: c.Name, arguments: "{}"}
	var text string
	switch {
	case len(c.Arguments) == 0:
	case json.Unmarshal(c.Arguments, &text) == nil:
		out.arguments = q.turn.Fill(text)
	default:
		var v any
		_ = json.Unmarshal(c.Arguments, &v) // part of a valid document
		b, err := json.Marshal(fill(v, q.turn))
		if err == nil && bytes.Contains(c.Arguments, []byte("{{")) {
			out.arguments = string(b)
			break
		}
		out.arguments = string(c.Arguments)
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

// name gives the calls that have no id one.
func (r *reply) name(prefix string) {
	for i := range r.parts {
		if p := &r.parts[i]; p.kind == partCall && p.call.id == "" {
			p.call.id = prefix + randomID(24)
		}
	}
}

// breaks arranges for the answer to break as its script wants; fail writes the vendor's error into a stream. It reports whether the
// answer is over before it began.
func (x *exchange) breaks(r *reply, stream bool, fail func(problem)) bool {
	b := r.ending
	if b == nil {
		return false
	}
	p := problem{status: max(b.Status, http.StatusInternalServerError), code: b.Code, message: b.Message}
	if b.Status != 0 {
		p.status = b.Status
	}
	p.kind = kindOf(p.status)
	switch {
	case b.How == "error" && (b.After == 0 || !stream):
		x.operation.vendor.refuse(x, p)
		return true
	case !stream:
		panic(http.ErrAbortHandler)
	}
	x.ending = &ending{after: b.After, act: func() {
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

// ending is what becomes of a stream after some events.
type ending struct {
	after int
	act   func()
}

// over counts an event that is about to be sent and reports whether the stream has ended before it.
func (x *exchange) over() bool {
	e := x.ending
	switch {
	case e == nil:
		return false
	case e.after > 0:
		e.after--
		return false
	case e.act != nil:
		act := e.act
		e.act, x.ending = nil, nil // what it writes is sent
		act()
		x.ending = e
	}
	return true
}

func (s *server) addScript(_ http.ResponseWriter, r *http.Request) (any, error) {
	added := new(script.Script)
	if err := decodeControl(r, added); err != nil {
		return nil, err
	}
	if err := added.Check(); err != nil {
		return nil, err
	}
	return map[string]string{"id": s.scripts.Add(added)}, nil
}

func (s *server) listScripts(http.ResponseWriter, *http.Request) (any, error) {
	return map[string]any{"scripts": s.scripts.All()}, nil
}

func (s *server) removeScripts(_ http.ResponseWriter, r *http.Request) (any, error) {
	id := r.PathValue("id")
	if !s.scripts.Remove(id) && id != "" {
		return nil, unknownError("no script " + id)
	}
	return s.listScripts(nil, nil)
}
