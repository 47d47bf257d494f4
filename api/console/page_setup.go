package console

import (
	"cmp"
	"slices"

	"golang.org/x/sync/errgroup"

	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/api/setup"
	"modelrelay/providers/health"
)

// step is one line of the way from a new gateway to the first answer.
type step struct {
	Word   string
	Status setup.Status
	// Detail is a sentence, Fix a command, Link the page that fixes it.
	Detail, Fix, Link string
}

// toDo is the status of a step that is to be done.
const toDo setup.Status = "todo"

type setupData struct {
	operator.Setup

	Steps []step
	// Tested has the results of a test of all channels, nil for none.
	Tested     *Table
	Done       int
	Try        *program
	Model      string
	VideoModel string
}

// Mark returns the mark of a status.
func (setupData) Mark(status setup.Status) string {
	return cmp.Or(map[setup.Status]string{setup.OK: "done", setup.Failed: "failed", setup.Warning: "warning"}[status], "waiting")
}

// Fix returns the fix of a finding; "" if the next finding has the same fix, which is shown once, after all findings that it fixes.
func (setupData) Fix(all []setup.Finding, i int) string {
	if i+1 < len(all) && all[i+1].Fix == all[i].Fix {
		return ""
	}
	return all[i].Fix
}

// setupPage guides the operator of a new gateway to the first answer.
func setupPage() page {
	return page{
		name: "setup", path: "/setup", roles: staff(), nav: "setup", key: "s", scripts: []string{"try.js"},
		show: func(v *View) (any, error) { return readSetup(v) },
		acts: map[string]act{"test": {roles: []edge.Role{Operator}, do: testChannels}},
	}
}

// readSetup runs all checks. A service that does not answer is a line.
func readSetup(v *View) (data setupData, err error) {
	if data.Setup, err = v.s.o.Operator.Setup(v.R.Context(), v.actor(), nil); err != nil {
		return data, err
	}
	var models []operator.Model
	if !v.Refreshes() {
		models, _ = tryModels(v) // without a list, any name can be typed
	}
	data.Model, data.VideoModel = preferred(models, "chat"), preferred(models, "video")
	services := step{Word: "setup.services", Status: setup.OK}
	for _, part := range data.Data {
		needed := slices.Contains([]string{"redis", "temporal", "store", "workers"}, part.Name)
		if needed && part.Status != setup.OK && part.Status != setup.Warning {
			services.Status = setup.Failed
		}
	}
	channels := channelStep(v)
	tokens, used := tokenSteps(v)
	data.Steps = []step{services, {Word: "setup.signin", Status: setup.OK, Detail: v.User.Name}, channels, tokens, used}
	for _, one := range data.Steps {
		if one.Status == setup.OK {
			data.Done++
		}
	}
	data.Try = programFor(v.s.base(v.R), createChat, cmp.Or(data.Model, "MODEL"), "Hello", false)
	return data, nil
}

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
	data, err := readSetup(v)
	data.Tested = &Table{
		ID: "tested", Caption: "setup.tested", Empty: "channels.empty", Rows: rows,
		Columns: columns("channel.name", "channel.tested", "#channel.took", "channel.verdict"),
	}
	return "", data, err
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
func channelStep(v *View) step {
	channels := step{Word: "setup.channels", Status: toDo}
	sum, err := v.s.o.Operator.SummarizeChannels(v.R.Context(), v.actor())
	switch {
	case err != nil:
		channels.Status, channels.Detail = setup.Failed, message(err)
		return channels
	case sum.All == 0:
		channels.Fix = "channels:\n  - name: main\n    vendor: openai\n    base_url: https://api.openai.com/v1\n    keys: [\"${OPENAI_API_KEY}\"]\n    models: {gpt-4o-mini: }"
	case sum.Out == sum.All:
		channels.Status = setup.Failed
	default:
		channels.Status = setup.OK
	}
	channels.Detail = v.T("setup.channels.n", "n", sum.All-sum.Out, "all", sum.All)
	return channels
}

// tokenSteps check whether there is a token for a program, and whether a program has called.
func tokenSteps(v *View) (made, used step) {
	made, used = step{Word: "setup.token", Status: toDo, Link: v.To("tokens", "new")}, step{Word: "setup.used", Status: toDo}
	list, err := v.s.o.Operator.ListTokens(v.R.Context(), v.actor(),
		&operator.TokenQuery{State: "active", PageOf: operator.PageOf{Limit: mostNames}})
	if err != nil {
		made.Status, made.Detail = setup.Failed, message(err)
		return made, used
	}
	for _, token := range list.Data {
		if token.Name != consoleToken {
			made.Status, made.Link = setup.OK, ""
		}
		if token.LastUsed != nil {
			used.Status = setup.OK
		}
	}
	return made, used
}
