// Package script decides what a fake model says next, whatever dialect asks: a queue of answers, or a plan that follows a conversation.
// It knows no vendor's wire and no HTTP; package upstream renders what it decides.
package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

// Script is what some calls are answered with. It is the body of POST /_control/scripts.
type Script struct {
	ID string `json:"id"`

	// Which calls: each empty field selects all. Contains is text anywhere in the request body.
	Vendor    string `json:"vendor,omitempty"`
	Operation string `json:"operation,omitempty"`
	Key       string `json:"key,omitempty"`
	Model     string `json:"model,omitempty"`
	Contains  string `json:"contains,omitempty"`

	// Plan false: each selected call takes the next answer; when all are taken the script selects nothing more.
	// Plan true: a call with n rounds of tool results gets answer n, at most the last; only calls that offer a tool are selected.
	Plan    bool     `json:"plan,omitempty"`
	Answers []Answer `json:"answers"`

	Taken int `json:"taken"` // answers given so far
}

// Answer is one turn of the model.
type Answer struct {
	Parts []Part `json:"parts"`
	// Stop is why the answer ended: end, calls, max_tokens, stop_sequence, refusal, filtered, context_full, paused, or the vendor's own word.
	// Empty: calls when the answer has any, else end.
	Stop         string `json:"stop,omitempty"`
	StopSequence string `json:"stop_sequence,omitempty"` // what stop_sequence met
	Usage        *Usage `json:"usage,omitempty"`         // nil: counted
	// Interleave mixes the arguments of parallel calls in a stream of chat completions; the other dialects cannot.
	Interleave bool   `json:"interleave,omitempty"`
	Break      *Break `json:"break,omitempty"`
}

// Part is a piece of an answer; exactly one field is set. In text and in string arguments {{said}} stands for the texts and results
// of the turn answered, joined by " | ", and {{media}} for its media (see Media).
type Part struct {
	Think    Words   `json:"think,omitempty"`
	Redacted bool    `json:"redacted,omitempty"` // thinking that is not shown
	Text     Words   `json:"text,omitempty"`
	Refusal  Words   `json:"refusal,omitempty"`
	Search   *Search `json:"search,omitempty"` // a search of the web that the vendor makes, where the request offers it
	Cited    *Cited  `json:"cited,omitempty"`  // a text that cites a page
	Call     *Call   `json:"call,omitempty"`
	Any      []Call  `json:"any,omitempty"` // the first of these calls whose tool the request offers
}

// Search is a search of the web, and what it found.
type Search struct {
	Query string `json:"query"`
	Pages []Page `json:"pages,omitempty"`
}

// Page is a page of the web.
type Page struct {
	URL   string `json:"url"`
	Title string `json:"title"`
}

// Cited is a text that cites a page of the searches before it.
type Cited struct {
	Text Words `json:"text"`
	Page int   `json:"page"` // 0: the first one found in the answer
}

// Call is a call of a tool. Arguments are an object, or a string that is sent as it is, whole JSON or not.
type Call struct {
	ID        string          `json:"id,omitempty"` // empty: the vendor makes one
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // absent: {}
}

// Usage is what an answer claims to have cost. Read, Write and Write1h are parts of Input, Reasoning is a part of Output.
type Usage struct {
	Input     int `json:"input"`
	Read      int `json:"read,omitempty"`
	Write     int `json:"write,omitempty"`
	Write1h   int `json:"write_1h,omitempty"`
	Output    int `json:"output"`
	Reasoning int `json:"reasoning,omitempty"`
}

// Break ends an answer before its end.
type Break struct {
	After   int    `json:"after"`             // events sent before; an error after 0 is an HTTP status
	How     string `json:"how"`               // error: the vendor's own, in the stream; cut: the connection drops; end: the stream just ends
	Status  int    `json:"status,omitempty"`  // of an error; 0: 500
	Code    string `json:"code,omitempty"`    // of an error; empty: the vendor's for the status
	Message string `json:"message,omitempty"` // of an error
}

// Words are text as a stream cuts it: a string is cut behind each space, a list of strings is sent as it is.
type Words []string

// UnmarshalJSON implements [json.Unmarshaler].
func (w *Words) UnmarshalJSON(b []byte) error {
	var text string
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
		*w = Cut(text)
		return nil
	}
	return json.Unmarshal(b, (*[]string)(w))
}

// Cut splits text behind each space.
func Cut(text string) Words {
	words := Words{}
	for len(text) > 0 {
		end := len(text)
		for i := range len(text) - 1 {
			if text[i] == ' ' {
				end = i + 1
				break
			}
		}
		words = append(words, text[:end])
		text = text[end:]
	}
	return words
}

// Check says what is wrong with a script.
func (s *Script) Check() error {
	if len(s.Answers) == 0 {
		return errors.New("answers: a script needs one")
	}
	for i := range s.Answers {
		if err := s.Answers[i].check(); err != nil {
			return fmt.Errorf("answers[%d].%w", i, err)
		}
	}
	return nil
}

func (a *Answer) check() error {
	if b := a.Break; b != nil {
		switch {
		case b.How != "error" && b.How != "cut" && b.How != "end":
			return fmt.Errorf("break.how: unknown word %q", b.How)
		case b.After < 0:
			return errors.New("break.after: must not be negative")
		case b.Status != 0 && (b.Status < 400 || b.Status > 599):
			return fmt.Errorf("break.status: %d is no error", b.Status)
		}
	}
	if len(a.Parts) == 0 && a.Break == nil && a.Stop == "" {
		return errors.New("parts: an answer has parts, a stop or a break")
	}
	pages := 0
	for i := range a.Parts {
		p := &a.Parts[i]
		if err := p.check(); err != nil {
			return fmt.Errorf("parts[%d].%w", i, err)
		}
		switch {
		case p.Search != nil:
			pages += len(p.Search.Pages)
		case p.Cited != nil && (p.Cited.Page < 0 || p.Cited.Page >= pages):
			return fmt.Errorf("parts[%d].cited.page: %d of the %d found before it", i, p.Cited.Page, pages)
		}
	}
	return nil
}

func (p *Part) check() error {
	set := 0
	for _, has := range []bool{
		p.Think != nil, p.Redacted, p.Text != nil, p.Refusal != nil, p.Search != nil, p.Cited != nil, p.Call != nil, p.Any != nil,
	} {
		if has {
			set++
		}
	}
	if set != 1 {
		return fmt.Errorf("think, redacted, text, refusal, search, cited, call, any: %d of them are set, must be one", set)
	}
	calls := p.Any
	if p.Call != nil {
		calls = []Call{*p.Call}
	}
	for i := range calls {
		a := calls[i].Arguments
		switch {
		case calls[i].Name == "":
			return errors.New("call.name: needed")
		case len(a) > 0 && a[0] != '{' && a[0] != '"':
			return errors.New("call.arguments: an object, or a string")
		}
	}
	return nil
}

// Ask is what of a call decides about its answer.
type Ask struct {
	Vendor, Operation, Key, Model string
	Body                          []byte
	Tools                         []string // names of the functions it offers
	Rounds                        int      // turns of tool results in its history
}

func (s *Script) selects(a *Ask) bool {
	switch {
	case s.Vendor != "" && s.Vendor != a.Vendor, s.Operation != "" && s.Operation != a.Operation,
		s.Key != "" && s.Key != a.Key, s.Model != "" && s.Model != a.Model,
		s.Contains != "" && !bytes.Contains(a.Body, []byte(s.Contains)):
		return false
	case s.Plan:
		return len(a.Tools) > 0
	}
	return s.Taken < len(s.Answers)
}

// Book holds the scripts in force, oldest first. Its zero value is empty. It is safe for concurrent use.
type Book struct {
	some    atomic.Bool // false spares calls the lock
	mu      sync.Mutex
	last    int
	scripts []*Script
}

// Add puts a script behind the others and names it.
func (b *Book) Add(s *Script) (id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	s.ID, s.Taken = "script_"+strconv.Itoa(b.last), 0
	b.scripts = append(b.scripts, s)
	b.some.Store(true)
	return s.ID
}

// Take returns the answer that the oldest script which selects the call has for it; nil: none does.
func (b *Book) Take(a Ask) *Answer {
	if !b.some.Load() {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.scripts {
		if !s.selects(&a) {
			continue
		}
		n := s.Taken
		if s.Plan {
			n = min(a.Rounds, len(s.Answers)-1)
		}
		s.Taken++
		return &s.Answers[n]
	}
	return nil
}

// All returns copies; their answers are shared and must not be changed.
func (b *Book) All() []Script {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]Script, 0, len(b.scripts))
	for _, s := range b.scripts {
		all = append(all, *s)
	}
	return all
}

// Remove ends the script named id, or all when id is empty, and reports whether there was one.
func (b *Book) Remove(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := len(b.scripts)
	b.scripts = slices.DeleteFunc(b.scripts, func(s *Script) bool { return id == "" || s.ID == id })
	b.some.Store(len(b.scripts) > 0)
	return len(b.scripts) < before
}
