package form

import (
	"cmp"
	"slices"
	"strconv"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// Arrangement is how a dialect whose sides take turns wants them.
type Arrangement struct {
	// Takes reports whether the dialect can say a thought, or state on a text that says nothing. What it cannot say is left out.
	Takes func(block *Block) bool
	// InlineSystem: a System turn may follow what the user said, where the assistant's turn or nothing follows. Elsewhere, and
	// without this, it is text of the user's turn between the words <system> and </system>.
	InlineSystem bool
	// Apart: turns of the user stay apart and System turns stay where they are, for a dialect whose sides need not take turns.
	// What the assistant said without a break is still one turn.
	Apart bool
}

// Arrange gives the system blocks and the turns as such a dialect wants them; the prompt stays as it is. The sides alternate,
// but for System turns where they may stand. Texts without words, thoughts that nothing follows and turns without blocks are
// gone. The results of a turn's calls are the first blocks of the user's turn after it, in the order of the calls. Every call
// has an id of its own, and results have the id and the name of their call. Where nothing was said, the last system block is
// the user's turn.
//
// A result without a call, or behind another one of the same call, is a fault that names FieldResultID of its block. A call
// without a result is a fault that names it, and so is a prompt that says nothing. Every vendor refuses these, and what stood in
// for a result would tell the model of something that did not happen.
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
		return nil, nil, providers.InvalidField(p.Fields[FieldTurns], "The request says nothing that could be answered.")
	}
	last := len(system) - 1
	return system[:last:last], []Turn{{Role: User, Blocks: system[last:], At: system[last].At}}, nil
}

// SinceUser is the index of the first turn behind the last one in which the user said something next to results.
func SinceUser(turns []Turn) int {
	for i, turn := range slices.Backward(turns) {
		if turn.Role == User && slices.ContainsFunc(turn.Blocks, func(b Block) bool { return b.Kind != BlockResult }) {
			return i + 1
		}
	}
	return 0
}

// keeps reports whether a block says anything.
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

// run is what one side says until the other does. The user's hold System turns too.
type run struct {
	role    Role // User or Assistant
	blocks  []Block
	results []placed
	// tail are the blocks of System turns behind all others, which may be a turn of their own.
	tail []Block
	at   Path
}

// placed is a result with the place of its call.
type placed struct {
	call  int
	block Block
}

// queue are the calls of one id or name in the last run that has any, of which results take the first that has none yet.
type queue struct {
	run   int
	calls []int
	next  int
}

// called is a call that was seen.
type called struct {
	run      int
	id, name string
	at       Path
	// named: the client gave the id.
	named, answered bool
}

type arranging struct {
	Arrangement
	runs         []run
	calls        []called
	byID, byName map[string]*queue
	// early are results whose call has not been seen, twice those of calls that have one.
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

// open begins the run that a block of a turn belongs to, unless the last one is it; opened reports whether the turn has opened
// one. Where turns stay apart, a run of the assistant's has one after it for the results of its calls alone.
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

// speak makes the system blocks so far texts of the user, because more of the user follows.
func (r *run) speak() {
	for _, block := range r.tail {
		if block.Kind == BlockText {
			block.Text = rawjson.Wrap([]byte("<system>"), block.Text.Inner(), []byte("</system>"))
		}
		r.blocks = append(r.blocks, block)
	}
	r.tail = nil
}

// call notes a call and gives it an id of its own.
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

// callOf finds the call of a result: by id, and by name where the result or the call came without one. It is -1 for none.
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

// take gives the first call of a queue without a result, or its last one.
func (a *arranging) take(q *queue) int {
	for q.next < len(q.calls)-1 && a.calls[q.calls[q.next]].answered {
		q.next++
	}
	return q.calls[q.next]
}

// answer puts a result behind the run of its call.
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

// place puts the early results where their calls were seen later. The fault is of one that has none, or not one of its own, or
// of a call without one.
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
