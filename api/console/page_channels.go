package console

import (
	"context"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/providers/health"
)

// circuitCell is the state of a channel or a key as word and mark, with the rest of a cooldown.
func circuitCell(v *View, h health.CircuitState) Cell {
	marks := map[string]string{
		health.StateClosed: "working", health.StateOpen: "warning", health.StateHalfOpen: "probing",
		health.StatePaused: "paused", health.StateDisabled: "paused",
	}
	mark, known := marks[h.State]
	if !known {
		return Cell{Text: h.State}
	}
	cell := Cell{Word: "channel.state." + h.State, Mark: mark}
	if h.CooldownLeft > 0 {
		cell.Note = v.T("channel.left", "time", time.Duration(h.CooldownLeft*float64(time.Second)).Round(time.Second))
	}
	return cell
}

// faultCell is a last fault in one line; empty for nil.
func faultCell(v *View, fault *health.LastFault) Cell {
	if fault == nil {
		return Cell{}
	}
	words := []string{v.Fault(fault.Kind)}
	if fault.Status > 0 {
		words = append(words, strconv.Itoa(fault.Status))
	}
	for _, word := range []string{fault.Key, fault.Code} {
		if word != "" {
			words = append(words, word)
		}
	}
	return Cell{Text: strings.Join(words, " "), Note: fault.At.UTC().Format("2006-01-02 15:04:05Z")}
}

func channelsPage() page {
	return page{
		name: "channels", path: "/channels", roles: staff(), nav: "channels", key: "n",
		show: func(v *View) (any, error) { return showChannels(v) },
		csv:  func(data any) *Table { return data.(*Table) }, //nolint:forcetypeassert // of show
	}
}

// namesOf returns the page of a list by name that the query selects.
func (v *View) namesOf() *operator.NamesOf {
	return &operator.NamesOf{Q: v.Query("q"), After: v.Query("after")}
}

func showChannels(v *View) (*Table, error) {
	list, err := v.s.o.Operator.ListChannels(v.R.Context(), v.actor(), v.namesOf())
	if err != nil {
		return nil, err
	}
	table := &Table{
		ID: "channels", Caption: "channels.caption", Empty: "channels.empty", CSV: true, Next: v.next(list.After),
		Columns: columns(
			"channel.name", "channel.state", "#channel.calls", "#channel.faults", "#channel.jobs", "channel.models", "channel.groups",
			"channel.fault",
		),
	}
	for _, c := range list.Data {
		state := circuitCell(v, c.CircuitState)
		if c.Pause != nil {
			state.Note = pauseNote(c.Pause)
		}
		jobs := Cell{}
		if c.Slots != nil {
			jobs = Cell{Text: v.T("channel.slots", "n", c.Slots.Taken, "max", c.Slots.Max), Bar: Share(float64(c.Slots.Taken), float64(c.Slots.Max))}
			if c.Slots.Line > 0 {
				jobs.Note = v.T("channel.line", "n", c.Slots.Line)
			}
		}
		name := Cell{Text: c.Name, Link: v.To("channels", c.Name), Note: c.Vendor}
		table.add(c.Name, name, state, c.CallsPerMinute, c.FaultsPerMinute, jobs, some(c.Served, shownModels), some(c.Groups, shownGroups),
			faultCell(v, c.Overall().LastFault))
	}
	return table, nil
}

func pauseNote(pause *health.Pause) string { return strings.TrimSpace(pause.By + " " + pause.Reason) }

// The maximum number of models and groups in a channel's row, and of names elsewhere.
const (
	shownModels = 4
	shownGroups = 20
	shownNames  = 100
)

func some(names []string, most int) string {
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " …"
	}
	return strings.Join(names, ", ")
}

type channelData struct {
	Channel health.ChannelState
	State   Cell
	// Fault is the last fault, with its time.
	Fault Cell
	// CoolsDown: the channel or a key of it cools down, or has not answered since a cooldown.
	CoolsDown bool
	Keys      *Table
	// Tested is the result of a test, nil for none. Verdict is its sentence.
	Tested  *operator.ChannelTested
	Verdict string
}

type changeChannel func(s *operator.Service, ctx context.Context, by operator.Actor, in *operator.ChannelName) (health.ChannelState, error)

func channelAct(done string, do changeChannel) act {
	return act{roles: []edge.Role{Operator}, do: func(v *View) (string, any, error) {
		name := operator.ChannelName{Name: v.R.PathValue("name")}
		_, err := do(v.s.o.Operator, v.R.Context(), v.actor(), &name)
		return pathOf("channels", name.Name) + "?done=" + done, nil, err
	}}
}

func channelPage() page {
	return page{
		name: "channel", path: "/channels/{name}", roles: staff(), under: "channels",
		show: func(v *View) (any, error) { return readChannel(v) },
		acts: map[string]act{
			"pause":  {roles: []edge.Role{Operator}, do: pauseChannel},
			"resume": channelAct("channel-resumed", (*operator.Service).ResumeChannel),
			"wake":   channelAct("channel-woken", (*operator.Service).WakeChannel),
			"test":   {roles: []edge.Role{Operator}, do: testChannel},
		},
	}
}

func pauseChannel(v *View) (string, any, error) {
	in := operator.PauseChannel{ChannelName: operator.ChannelName{Name: v.R.PathValue("name")}}
	in.Body.Reason = v.Form.Value("reason")
	in.Body.Minutes, _ = strconv.Atoi(v.Form.Value("minutes")) // the service refuses 0 and names the field
	_, err := v.s.o.Operator.PauseChannel(v.R.Context(), v.actor(), &in)
	return pathOf("channels", in.Name) + "?done=channel-paused", nil, err
}

func readChannel(v *View) (data channelData, err error) {
	c, err := v.s.o.Operator.Channel(v.R.Context(), v.actor(), &operator.ChannelName{Name: v.R.PathValue("name")})
	if err != nil {
		return data, err
	}
	cools := func(h health.TargetState) bool { return h.State == health.StateOpen || h.State == health.StateHalfOpen }
	data = channelData{
		Channel: c, State: circuitCell(v, c.CircuitState), Fault: faultCell(v, c.Overall().LastFault), CoolsDown: cools(c.TargetState),
		Keys: &Table{ID: "keys", Caption: "channel.keys", Empty: "channel.keys.none", Columns: columns(
			"channel.key", "channel.state", "#channel.calls", "#channel.faults", "channel.fault",
		)},
	}
	for _, key := range c.Keys {
		data.CoolsDown = data.CoolsDown || cools(key.TargetState)
		data.Keys.add("", Cell{Text: key.Fingerprint, Code: true}, circuitCell(v, key.CircuitState), key.CallsPerMinute, key.FaultsPerMinute,
			faultCell(v, key.LastFault))
	}
	return data, nil
}

// testChannel tests the channel and shows the result. It sends a typed key only to the upstream.
func testChannel(v *View) (string, any, error) {
	name := operator.ChannelName{Name: v.R.PathValue("name")}
	in := operator.TestChannel{ChannelName: name, Body: &operator.ChannelKey{Key: v.Form.Value("key")}}
	tested, err := v.s.o.Operator.TestChannel(v.R.Context(), v.actor(), &in)
	if err != nil {
		return "", nil, err
	}
	data, err := readChannel(v)
	data.Tested, data.Verdict = &tested, v.Finding(tested.Code, tested.Values)
	return "", data, err
}
