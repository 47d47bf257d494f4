package form

import (
	"cmp"
	"slices"
	"strconv"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// Arrangement defines the turns that a dialect with alternating sides accepts.
type Arrangement struct {
	// Takes reports whether the dialect can represent a thought, or a state on an empty text. Others are omitted.
	Takes func(block *Block) bool
	// InlineSystem: a System turn may be after the user's turn, if the assistant's turn or nothing follows. Any other System turn is
	// text of the user's turn between <system> and </system>.
	InlineSystem bool
	// Apart: turns of the user are not merged and System turns stay, for a dialect whose sides need not alternate. Consecutive turns of
	// the assistant are merged nevertheless.
	Apart bool
}

// Arrange returns the system blocks and the turns for such a dialect; it does not change the prompt. The sides alternate, except for
// permitted System turns. Blank texts, thoughts at the end of a turn and turns without blocks are omitted. The results of a turn's calls
// are the first blocks of the user's next turn, in the order of the calls. Every call has a unique id, and results have the id and the name
// of their call. If there is no turn, the last system block becomes the user's turn.
//
// A result without a call, or a second result of a call, is a fault that names FieldResultID of its block. A call without a result is a
// fault that names it, and so is an empty prompt. Every vendor refuses these, and an invented result would mislead the model.
func (p *Prompt) Arrange(want Arrangement) (system []Block, turns []Turn, fault *providers.Fault) {
	for i := range p.System {
		if want.keeps(&p.System[i]) {
			system = append(system, p.System[i])
		}
	}
	a := arranging{Arrangement: want, runs: make([]run, 0, len(p.Turns)+1), byID: make(map[string]*queue), byName: make(map[string]*queue)}
	for i := range p.Turns {
		a.add(&p.Turns[i])
	}
	if fault = a.place(p.Fields[FieldResultID]); fault != nil {
		return nil, nil, fault
	}
	if turns = a.turns(len(p.Turns) + 1); len(turns) > 0 {
		return system, turns, nil
	}
	if len(system) == 0 {
		return nil, nil, providers.InvalidField(p.Fields[FieldTurns], "The request has no content to answer.")
	}
	last := len(system) - 1
	return system[:last:last], []Turn{{Role: User, Blocks: system[last:], At: system[last].At}}, nil
}

// SinceUser returns the index of the first turn after the last user's turn that has blocks other than results.
func SinceUser(turns []Turn) int {
	for i, turn := range slices.Backward(turns) {
		if turn.Role == User && slices.ContainsFunc(turn.Blocks, func(b Block) bool { return b.Kind != BlockResult }) {
			return i + 1
		}
	}
	return 0
}

// keeps reports whether a block is not omitted.
func (want Arrangement) keeps(block *Block) bool {
	switch block.Kind {
	case BlockText:
		return !block.Text.Blank() || len(block.State) > 0 && want.Takes != nil && want.Takes(block)
	case BlockMedia:
		return block.Media.Kind != PlainText || len(block.Media.Data) > 0 || !block.Media.Text.Blank() ||
			len(block.Media.URL) > 0 || len(block.Media.File) > 0
	case BlockThought:
		return (!block.Text.Empty() || len(block.State) > 0) && (want.Takes == nil || want.Takes(block))
	case BlockState:
		return false
	}
	return true
}

// run is the consecutive turns of one side. Those of the user include System turns.
type run struct {
	role    Role // User or Assistant
	blocks  []Block
	results []placed
	// tail are the blocks of System turns after all others, which may become a separate turn.
	tail []Block
	at   Path
}

// placed is a result with the index of its call.
type placed struct {
	call  int
	block Block
}

// queue are the calls of one id or name in the last run that has any. A result belongs to the first of them without a result.
type queue struct {
	run   int
	calls []int
	next  int
}

// called is a call of an earlier run.
type called struct {
	run      int
	id, name string
	at       Path
	// named: the id is the client's.
	named, answered bool
}

type arranging struct {
	Arrangement
	runs         []run
	calls        []called
	byID, byName map[string]*queue
	// early are results before their call, twice those of calls that already have one.
	early, twice []Block
}

func (a *arranging) add(turn *Turn) {
	side, opened := turn.Role, false
	if side == System && !a.Apart {
		side = User
	}
	for i := range turn.Blocks {
		block := &turn.Blocks[i]
		if !a.keeps(block) {
			continue
		}
		isResult := block.Kind == BlockResult && block.Result != nil
		if !a.Apart || !isResult {
			a.open(side, turn, opened)
			opened = true
		}
		if isResult {
			if call := a.callOf(block.Result); call >= 0 {
				a.answer(call, block)
			} else {
				a.early = append(a.early, *block)
			}
			continue
		}
		last := &a.runs[len(a.runs)-1]
		switch side {
		case turn.Role:
			last.speak()
			last.blocks = append(last.blocks, *block)
			if block.Kind == BlockCall {
				a.call(&last.blocks[len(last.blocks)-1])
			}
		default:
			last.tail = append(last.tail, *block)
		}
	}
}

// open begins the run of a block unless it is the last one; opened: the turn has begun one. With Apart, a run of the assistant is followed
// by a separate run with the results of its calls.
func (a *arranging) open(side Role, turn *Turn, opened bool) {
	if n := len(a.runs); n > 0 {
		last := a.runs[n-1].role
		if last == side && (!a.Apart || side == Assistant || opened) {
			return
		}
		if a.Apart && last == Assistant {
			a.runs = append(a.runs, run{role: User, at: turn.At})
		}
	}
	a.runs = append(a.runs, run{role: side, at: turn.At, blocks: make([]Block, 0, len(turn.Blocks))})
}

// speak turns the system blocks so far into texts of the user, because more blocks of the user follow.
func (r *run) speak() {
	for _, block := range r.tail {
		if block.Kind == BlockText {
			block.Text = rawjson.Wrap([]byte("<system>"), block.Text.Inner(), []byte("</system>"))
		}
		r.blocks = append(r.blocks, block)
	}
	r.tail = nil
}

// call records a call and gives it a unique id.
func (a *arranging) call(block *Block) {
	call := &block.Call
	n, asked := len(a.calls), call.ID
	if call.ID == "" {
		call.ID = "call_" + strconv.Itoa(n+1)
	}
	if a.byID[call.ID] != nil {
		call.ID += "#" + strconv.Itoa(n+1)
	}
	a.calls = append(a.calls, called{run: len(a.runs) - 1, id: call.ID, name: call.Name, at: block.At, named: asked != ""})
	a.enqueue(a.byID, cmp.Or(asked, call.ID), n)
	a.enqueue(a.byName, call.Name, n)
}

func (a *arranging) enqueue(queues map[string]*queue, key string, call int) {
	q := queues[key]
	if q == nil {
		q = new(queue)
		queues[key] = q
	}
	if now := len(a.runs) - 1; q.run != now {
		q.run, q.calls, q.next = now, nil, 0
	}
	q.calls = append(q.calls, call)
}

// callOf returns the index of a result's call: by id, or by name if the result or the call has no id; -1 for none.
func (a *arranging) callOf(result *Result) int {
	if q := a.byID[result.ID]; q != nil && result.ID != "" {
		return a.take(q)
	}
	if q := a.byName[result.Name]; q != nil && result.Name != "" {
		if call := a.take(q); result.ID == "" || !a.calls[call].named {
			return call
		}
	}
	return -1
}

// take returns the first call of a queue without a result, otherwise its last one.
func (a *arranging) take(q *queue) int {
	for q.next < len(q.calls)-1 && a.calls[q.calls[q.next]].answered {
		q.next++
	}
	return q.calls[q.next]
}

// answer puts a result after the run of its call.
func (a *arranging) answer(call int, block *Block) {
	c := &a.calls[call]
	if c.answered {
		a.twice = append(a.twice, *block)
		return
	}
	c.answered = true
	result := *block.Result
	result.ID, result.Name = c.id, cmp.Or(c.name, result.Name)
	if slices.ContainsFunc(result.Blocks, func(b Block) bool { return !a.keeps(&b) }) {
		result.Blocks = slices.DeleteFunc(slices.Clone(result.Blocks), func(b Block) bool { return !a.keeps(&b) })
	}
	put := *block
	put.Result = &result
	if c.run+1 == len(a.runs) {
		a.runs = append(a.runs, run{role: User, at: block.At})
	}
	behind := &a.runs[c.run+1]
	behind.results = append(behind.results, placed{call, put})
}

// place puts the early results after their calls. The fault: a result without a call, a second result, or a call without one.
func (a *arranging) place(idField string) *providers.Fault {
	refuse := func(result *Block, why string) *providers.Fault {
		at := result.At
		if idField != "" {
			at = at.Field(idField)
		}
		return providers.InvalidField(at.String(), "%s", why)
	}
	for i := range a.early {
		call := a.callOf(a.early[i].Result)
		if call < 0 {
			return refuse(&a.early[i], "No call of a tool in the request has this id.")
		}
		a.answer(call, &a.early[i])
	}
	if len(a.twice) > 0 {
		return refuse(&a.twice[0], "The call of a tool with this id has a result already.")
	}
	for i := range a.calls {
		if !a.calls[i].answered {
			return providers.InvalidField(a.calls[i].at.String(), "This call of a tool has no result in the request.")
		}
	}
	return nil
}

func (a *arranging) turns(size int) []Turn {
	turns := make([]Turn, 0, size)
	put := func(role Role, blocks []Block, at Path) {
		if n := len(turns); n > 0 && turns[n-1].Role == role && !a.Apart {
			turns[n-1].Blocks = append(turns[n-1].Blocks, blocks...)
		} else if len(blocks) > 0 {
			turns = append(turns, Turn{Role: role, Blocks: blocks, At: at})
		}
	}
	for i := range a.runs {
		r := &a.runs[i]
		if !a.InlineSystem || len(r.results)+len(r.blocks) == 0 {
			r.speak()
		}
		blocks := r.blocks
		for n := len(blocks); n > 0 && r.role == Assistant && blocks[n-1].Kind == BlockThought; n-- {
			blocks = blocks[:n-1]
		}
		if len(r.results) > 0 {
			slices.SortStableFunc(r.results, func(x, y placed) int { return x.call - y.call })
			blocks = make([]Block, 0, len(r.results)+len(r.blocks))
			for _, result := range r.results {
				blocks = append(blocks, result.block)
			}
			blocks = append(blocks, r.blocks...)
		}
		put(r.role, blocks, r.at)
		put(System, r.tail, r.at)
	}
	return turns
}
