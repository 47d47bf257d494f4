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

// check is one line of the list: a result, and the command that fixes a problem.
type check struct {
	Name, Word string
	// State is ok, bad, warn, or todo.
	State string
	// Detail is the gateway's text, Fix a command.
	Detail, Fix string
	// Findings are details of a part.
	Findings []finding
	Millis   float64
	Link     string
}

// Mark returns the mark of the state.
func (c check) Mark() string {
	return cmp.Or(map[string]string{"ok": "done", "bad": "failed", "warn": "warning"}[c.State], "waiting")
}

type setupData struct {
	Steps, Checks []check
	Version       string
	At            time.Time
	// Tested has the results of a test of all channels, nil for none.
	Tested     *Table
	Done       int
	Try        []snippets.Program
	Model      string
	VideoModel string
}

// setupPage guides the operator of a new gateway to the first answer.
func setupPage() page {
	return page{
		name: "setup", path: "/setup", roles: staff(), nav: "setup", key: "s", scripts: []string{"try.js"},
		show: func(v *View) (any, error) { return readSetup(v), nil },
		acts: map[string]act{"test": {roles: []Role{Operator}, do: testChannels}},
	}
}

// readSetup runs all checks. A service that does not answer is a line.
func readSetup(v *View) setupData {
	var models []tryModel
	if !v.Refreshes() {
		models, _ = tryModels(v) // without a list, any name can be typed
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

// setupFindings adds the findings of the checks: a line for each part, with each finding and its fix.
func setupFindings(v *View, data *setupData) {
	found, err := v.s.o.Operator.Setup(v.R.Context(), v.actor(), nil)
	if err != nil {
		data.Checks = []check{{Word: "setup.checks", State: "bad", Findings: []finding{{Message: message(err)}}}}
		return
	}
	data.Version, data.At = found.Version, found.CheckedAt
	states := map[setup.Status]string{setup.OK: "ok", setup.Warning: "warn", setup.Failed: "bad"}
	for _, part := range found.Data {
		line := check{Name: part.Name, State: cmp.Or(states[part.Status], "unknown"), Millis: part.Latency}
		for i, one := range part.Findings {
			if i > 0 && part.Findings[i-1].Fix == one.Fix { // once, after all findings that it fixes
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

// finding is a finding of a part of the setup in the view's language, with its fix.
type finding struct{ Message, Fix string }

// testsMost is how many channels one request tests, and testsAtOnce how many concurrently.
const (
	testsMost   = 50
	testsAtOnce = 4
)

// testChannels tests channels with a free request to each vendor, and shows the results.
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
	_ = all.Wait() // a failed test is a row
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

// messageMost is the maximum length of an upstream's message in a row, in bytes.
const messageMost = 300

// channelStep checks whether a channel can answer.
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

// tokenSteps check whether there is a token for a program, and whether a program has called.
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
