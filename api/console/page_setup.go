package console

import (
	"cmp"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"modelrelay/api/console/snippets"
	"modelrelay/api/operator"
	"modelrelay/api/setup"
	"modelrelay/providers/health"
)

// check is one line of the list: what is right, or what is wrong and the command that fixes it.
type check struct {
	Name, Word string
	// State is ok, bad, warn, or todo.
	State string
	// Detail is the gateway's own text for it; Fix a command.
	Detail, Fix string
	// Findings say more of a part.
	Findings []finding
	Millis   float64
	Link     string
}

// Mark is the check's.
func (c check) Mark() string {
	return cmp.Or(map[string]string{"ok": "done", "bad": "failed", "warn": "warning"}[c.State], "waiting")
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

// setup checks everything. What does not answer is a line of its own.
func readSetup(v *View) setupData {
	var models []tryModel
	if !v.Refreshes() {
		models, _ = tryModels(v) // any name can be typed
	}
	data := setupData{Model: preferred(models, snippets.Chat), VideoModel: preferred(models, snippets.Video)}
	setupFindings(v, &data)
	services := check{Word: "setup.services", State: "ok"}
	for _, c := range data.Checks {
		if slices.Contains([]string{"", "redis", "temporal", "store", "workers"}, c.Name) && c.State != "ok" && c.State != "warn" {
			services.State = "bad"
		}
	}
	channels := channelStep(v)
	tokens, used := tokenSteps(v)
	signIn := check{Word: "setup.signin", State: "ok", Detail: v.User.Name}
	data.Steps = []check{services, signIn, channels, tokens, used}
	for _, step := range data.Steps {
		if step.State == "ok" {
			data.Done++
		}
	}
	data.Try = snippets.For(v.s.base(v.R), snippets.Chat, cmp.Or(data.Model, "MODEL"), "Hello")
	return data
}

// setupFindings are those of the checks: a line for each part, and in it each finding with its fix.
func setupFindings(v *View, data *setupData) {
	found, err := v.s.o.Operator.Setup(v.R.Context(), v.actor(), nil)
	if err != nil {
		data.Checks = []check{{Word: "setup.checks", State: "bad", Findings: []finding{{Message: message(err)}}}}
		return
	}
	data.Version, data.At = found.Version, found.CheckedAt
	for _, part := range found.Data {
		line := check{Name: part.Name, State: stateOf(part.Status), Millis: part.Latency}
		for i, one := range part.Findings {
			if i > 0 && part.Findings[i-1].Fix == one.Fix { // once, below all that it fixes
				line.Findings[i-1].Fix = ""
			}
			line.Findings = append(line.Findings, finding{v.Finding(one.Code, one.Values), one.Fix})
		}
		if v.s.words.Has("check." + part.Name) {
			line.Word = "check." + part.Name
		}
		data.Checks = append(data.Checks, line)
	}
}

// finding is a finding of a part of the setup in the view's language, and what fixes it.
type finding struct{ Message, Fix string }

func stateOf(status setup.Status) string {
	return cmp.Or(map[setup.Status]string{setup.OK: "ok", setup.Warning: "warn", setup.Failed: "bad"}[status], "unknown")
}

// testsMost is how many channels one press tests, testsAtOnce how many of them at a time.
const (
	testsMost   = 50
	testsAtOnce = 4
)

// testChannels asks each channel's vendor something free and shows what came of it.
func testChannels(v *View) (string, any, error) {
	list, err := v.s.o.Operator.ListChannels(v.R.Context(), v.actor(), new(operator.NamesOf))
	if err != nil {
		return "", nil, err
	}
	channels := slices.DeleteFunc(list.Data, func(c health.ChannelState) bool { return c.State == health.StateDisabled })
	channels = channels[:min(len(channels), testsMost)]
	rows := make([]Row, len(channels))
	var all errgroup.Group
	all.SetLimit(testsAtOnce)
	for i, c := range channels {
		all.Go(func() error {
			rows[i] = testRow(v, c.Name)
			return nil
		})
	}
	_ = all.Wait() // a test that fails is a row
	data := readSetup(v)
	data.Tested = &Table{
		ID: "tested", Caption: "setup.tested", Empty: "channels.empty", Rows: rows,
		Columns: columns("channel.name", "channel.tested", "#channel.took", "channel.verdict"),
	}
	return "", data, nil
}

func testRow(v *View, name string) Row {
	outcome, verdict := Cell{Word: "channel.good", Mark: "done"}, ""
	tested, err := v.s.o.Operator.TestChannel(v.R.Context(), v.actor(), &operator.TestChannel{ChannelName: operator.ChannelName{Name: name}})
	switch {
	case err != nil:
		outcome, verdict = Cell{Word: "channel.bad", Mark: "failed"}, message(err)
	case !tested.OK:
		outcome, verdict = Cell{Word: "channel.bad", Mark: "failed"}, cut(v.Finding(tested.Code, tested.Values), messageMost)
	}
	return Row{ID: name, Cells: []Cell{{Text: name, Link: v.To("channels", name)}, outcome, {Text: Lasted(tested.Took)}, {Text: verdict}}}
}

// messageMost is how much of an upstream's message a row shows, in bytes.
const messageMost = 300

// channelStep reports whether anything can answer.
func channelStep(v *View) check {
	step := check{Word: "setup.channels", State: "todo"}
	sum, err := v.s.o.Operator.SummarizeChannels(v.R.Context(), v.actor())
	switch {
	case err != nil:
		step.State, step.Detail = "bad", message(err)
		return step
	case sum.All == 0:
		step.Fix = "channels:\n  - name: main\n    vendor: openai\n    base_url: https://api.openai.com/v1\n    keys: [\"${OPENAI_API_KEY}\"]\n    models: {gpt-4o-mini: }"
	case sum.Out == sum.All:
		step.State = "bad"
	default:
		step.State = "ok"
	}
	step.Detail = v.T("setup.channels.n", "n", sum.All-sum.Out, "all", sum.All)
	return step
}

// tokenSteps tell whether a program could call, and whether one did.
func tokenSteps(v *View) (made, used check) {
	made, used = check{Word: "setup.token", State: "todo", Link: v.To("tokens", "new")}, check{Word: "setup.used", State: "todo"}
	list, err := v.s.o.Operator.ListTokens(v.R.Context(), v.actor(),
		&operator.TokenQuery{State: "active", PageOf: operator.PageOf{Limit: mostNames}})
	if err != nil {
		made.State, made.Detail = "bad", message(err)
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
