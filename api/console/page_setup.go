package console

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"

	"modelrelay/api/console/inprocess"
	"modelrelay/api/console/snippets"
	"modelrelay/api/operator"
)

// check is one line of the list: what is right, or what is wrong and the command that fixes it.
type check struct {
	Name, Word string
	// State is ok, bad, warn, or todo.
	State string
	// Said is the gateway's own word for it; Fix a command.
	Said, Fix string
	// Findings say more of a part.
	Findings []finding
	Millis   float64
	Link     string
}

// Mark is the check's.
func (c check) Mark() string {
	return cmp.Or(map[string]string{"ok": "done", "bad": "failed", "warn": "hand"}[c.State], "waiting")
}

type setupData struct {
	Steps, Checks []check
	Version       string
	At            time.Time
	// Tested is what came of a test of all channels, nil where there was none.
	Tested     *Table
	Done       int
	Try        []snippets.Program
	Model      string
	VideoModel string
}

// setupPage is where a new gateway begins: from nothing to the first answer.
func setupPage() page {
	return page{
		name: "setup", path: "/setup", roles: staff(), nav: "setup", key: "s", scripts: []string{"try.js"},
		show: func(v *View) (any, error) { return readSetup(v), nil },
		acts: map[string]act{"test": {roles: []Role{Operator}, do: testChannels}},
	}
}

// setup looks at everything. What does not answer is a line of its own.
func readSetup(v *View) setupData {
	var list struct {
		Data []tryModel `json:"data"`
	}
	if !v.Refreshes() {
		_ = v.Get("/admin/models", nil, &list) // any name can be typed
	}
	data := setupData{Model: preferred(list.Data, snippets.Chat), VideoModel: preferred(list.Data, snippets.Video)}
	setupFindings(v, &data)
	services := check{Word: "setup.services", State: "ok"}
	for _, c := range data.Checks {
		if slices.Contains([]string{"", "redis", "temporal", "store", "workers"}, c.Name) && c.State != "ok" && c.State != "warn" {
			services.State = "bad"
		}
	}
	channels := channelStep(v)
	tokens, used := tokenSteps(v)
	signIn := check{Word: "setup.signin", State: "ok", Said: v.Who.Name}
	data.Steps = []check{services, signIn, channels, tokens, used}
	for _, step := range data.Steps {
		if step.State == "ok" {
			data.Done++
		}
	}
	data.Try = snippets.For(v.s.base(v.R), snippets.Chat, cmp.Or(data.Model, "MODEL"), "Hello")
	return data
}

// setupFindings are those of /admin/setup: a line for each part, and in it each finding with its fix.
func setupFindings(v *View, data *setupData) {
	var found struct {
		Version string    `json:"version"`
		Checked time.Time `json:"checked_at"`
		Data    []struct {
			Name     string    `json:"name"`
			Status   string    `json:"status"`
			Latency  float64   `json:"latency_ms"`
			Findings []finding `json:"findings"`
		} `json:"data"`
	}
	if err := v.Get("/admin/setup", nil, &found); err != nil {
		data.Checks = []check{{Word: "setup.checks", State: "bad", Findings: []finding{{Status: "failed", Message: err.Error()}}}}
		return
	}
	data.Version, data.At = found.Version, found.Checked
	for _, part := range found.Data {
		for i := range part.Findings {
			part.Findings[i].Message = v.Finding(part.Findings[i].Code, part.Findings[i].Values)
			if i > 0 && part.Findings[i-1].Fix == part.Findings[i].Fix { // once, below all that it fixes
				part.Findings[i-1].Fix = ""
			}
		}
		line := check{Name: part.Name, State: stateOf(part.Status), Findings: part.Findings, Millis: part.Latency}
		if v.s.words.Has("check." + part.Name) {
			line.Word = "check." + part.Name
		}
		data.Checks = append(data.Checks, line)
	}
}

// finding is one of a part of the set-up.
type finding struct {
	Status string            `json:"status"`
	Code   string            `json:"code"`
	Values map[string]string `json:"values"`
	Fix    string            `json:"fix"`
	// Message is the sentence in the view's language.
	Message string `json:"-"`
}

// Mark is the finding's.
func (f finding) Mark() string { return check{State: stateOf(f.Status)}.Mark() }

// stateOf is the state of a check by the word of the API.
func stateOf(status string) string {
	return cmp.Or(map[string]string{"ok": "ok", "warning": "warn", "failed": "bad"}[status], "unknown")
}

// testsMost is how many channels one press tests, testsAtOnce how many of them at a time.
const (
	testsMost   = 50
	testsAtOnce = 4
)

// testChannels asks each channel's vendor something free and shows what came of it.
func testChannels(v *View) (string, any, error) {
	channels, err := readChannels(v)
	if err != nil {
		return "", nil, err
	}
	channels = slices.DeleteFunc(channels, func(c channelState) bool { return c.State == "disabled" })
	channels = channels[:min(len(channels), testsMost)]
	rows := make([]Row, len(channels))
	var all sync.WaitGroup
	turns := make(chan struct{}, testsAtOnce)
	for i, c := range channels {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			rows[i] = testRow(v, c.Name)
		})
	}
	all.Wait()
	data := readSetup(v)
	data.Tested = &Table{
		ID: "tested", Caption: "setup.tested", Empty: "channels.empty", Rows: rows,
		Columns: []Column{{Word: "channel.name"}, {Word: "channel.tested"}, {Word: "channel.took", Number: true}, {Word: "channel.verdict"}},
	}
	return "", data, nil
}

// testRow tests one channel.
func testRow(v *View, name string) Row {
	var tested channelTest
	outcome, said := Cell{Word: "channel.good", Mark: "done"}, ""
	err := v.Do(http.MethodPost, "/admin/channels/"+inprocess.Segment(name)+"/test", map[string]any{}, &tested)
	switch {
	case err != nil:
		outcome, said = Cell{Word: "channel.bad", Mark: "failed"}, err.Error()
	case !tested.OK:
		outcome, said = Cell{Word: "channel.bad", Mark: "failed"}, cut(tested.Text(v), saidMost)
	}
	return Row{ID: name, Cells: []Cell{{Text: name, Link: v.To("channels", name)}, outcome, {Text: Lasted(tested.Took)}, {Text: said}}}
}

// saidMost is how much of an upstream's words stands in a row, in bytes.
const saidMost = 300

// channelStep tells whether anything can answer.
func channelStep(v *View) check {
	step := check{Word: "setup.channels", State: "todo"}
	var list struct {
		Data []struct {
			Name  string `json:"name"`
			State string `json:"state"`
		} `json:"data"`
	}
	if err := v.Get("/admin/channels", nil, &list); err != nil {
		step.State, step.Said = "bad", err.Error()
		return step
	}
	working := 0
	for _, channel := range list.Data {
		if channel.State == "closed" || channel.State == "half-open" {
			working++
		}
	}
	switch {
	case len(list.Data) == 0:
		step.Fix = "channels:\n  - name: main\n    vendor: openai\n    base_url: https://api.openai.com/v1\n    keys: [\"${OPENAI_API_KEY}\"]\n    models: {gpt-4o-mini: }"
	case working == 0:
		step.State = "bad"
	default:
		step.State = "ok"
	}
	step.Said = v.T("setup.channels.n", "n", working, "all", len(list.Data))
	return step
}

// tokenSteps tell whether a program could call, and whether one did.
func tokenSteps(v *View) (made, used check) {
	made, used = check{Word: "setup.token", State: "todo", Link: v.To("tokens", "new")}, check{Word: "setup.used", State: "todo"}
	list, err := v.s.o.Operator.ListTokens(v.R.Context(), v.actor(), &operator.TokenQuery{State: "active", PageOf: operator.PageOf{Limit: mostNames}})
	if err != nil {
		made.State, made.Said = "bad", message(err)
		return made, used
	}
	for _, token := range list.Data {
		if token.Name != consoleToken {
			made.State, made.Link = "ok", ""
		}
		if token.LastUsed != nil {
			used.State = "ok"
		}
	}
	return made, used
}
