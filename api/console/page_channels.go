package console

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/console/inprocess"
)

// channelState is a channel as the operator's operations show it.
type channelState struct {
	Name     string   `json:"name"`
	Vendor   string   `json:"vendor"`
	Groups   []string `json:"groups"`
	Priority int      `json:"priority"`
	Weight   int      `json:"weight"`
	Served   []string `json:"served"`

	channelHealth
	Pause *struct {
		Until  time.Time `json:"until"`
		By     string    `json:"by"`
		Reason string    `json:"reason"`
	} `json:"pause"`
	Slots *struct {
		Max   int `json:"max"`
		Taken int `json:"taken"`
		Line  int `json:"line"`
	} `json:"slots"`
	Keys []struct {
		Fingerprint string `json:"fingerprint"`
		channelHealth
	} `json:"keys"`
}

// channelHealth is how a channel or a key is doing.
type channelHealth struct {
	State     string     `json:"state"`
	RestLeft  float64    `json:"rest_left"`
	Calls     int64      `json:"calls_per_minute"`
	Faults    int64      `json:"faults_per_minute"`
	LastFault *lastFault `json:"last_fault"`
}

// lastFault is the last one of a channel or of a key.
type lastFault struct {
	At     time.Time `json:"at"`
	Kind   string    `json:"kind"`
	Code   string    `json:"code"`
	Status int       `json:"status"`
	Key    string    `json:"key"`
}

// later is the later of two faults; nil is none.
func later(a, b *lastFault) *lastFault {
	if a == nil || b != nil && b.At.After(a.At) {
		return b
	}
	return a
}

// rests tells whether there is a rest that can be ended.
func (h channelHealth) rests() bool { return h.State == "open" || h.State == "half-open" }

// lastOfAll is how the channel is doing, with the last fault of it and its keys.
func (c channelState) lastOfAll() channelHealth {
	last := c.channelHealth
	for _, key := range c.Keys {
		last.LastFault = later(last.LastFault, key.LastFault)
	}
	return last
}

// Rests tells whether the channel rests, or one of its keys.
func (c channelState) Rests() bool {
	rests := c.rests()
	for _, key := range c.Keys {
		rests = rests || key.rests()
	}
	return rests
}

// cell is the state in word and mark, with what is left of a rest.
func (h channelHealth) cell(v *View) Cell {
	marks := map[string]string{"closed": "working", "open": "hand", "half-open": "trial", "paused": "paused", "disabled": "paused"}
	mark, known := marks[h.State]
	if !known {
		return Text(h.State)
	}
	cell := Cell{Word: "channel.state." + h.State, Mark: mark}
	if h.RestLeft > 0 {
		cell.Note = v.T("channel.left", "time", time.Duration(h.RestLeft*float64(time.Second)).Round(time.Second))
	}
	return cell
}

// fault is the last one in a line.
func (h channelHealth) fault(v *View) Cell {
	if h.LastFault == nil {
		return Cell{}
	}
	words := []string{v.T("fault." + knownFault(v, h.LastFault.Kind))}
	if h.LastFault.Status > 0 {
		words = append(words, strconv.Itoa(h.LastFault.Status))
	}
	for _, word := range []string{h.LastFault.Key, h.LastFault.Code} {
		if word != "" {
			words = append(words, word)
		}
	}
	return Cell{Text: strings.Join(words, " "), Note: h.LastFault.At.UTC().Format("2006-01-02 15:04:05Z")}
}

func channelsPage() page {
	return page{
		name: "channels", path: "/channels", roles: staff(), nav: "channels", key: "n",
		show: func(v *View) (any, error) { return showChannels(v) },
		csv:  func(_ *View, data any) (*Table, error) { return data.(*Table), nil }, //nolint:forcetypeassert // of show
	}
}

func readChannels(v *View) ([]channelState, error) {
	var list struct {
		Data []channelState `json:"data"`
	}
	err := v.Get("/admin/channels", nil, &list)
	return list.Data, err
}

func showChannels(v *View) (*Table, error) {
	channels, err := readChannels(v)
	if err != nil {
		return nil, err
	}
	table := &Table{
		ID: "channels", Caption: "channels.caption", Empty: "channels.empty", CSV: true,
		Columns: []Column{
			{Word: "channel.name"},
			{Word: "channel.state"},
			{Word: "channel.calls", Number: true},
			{Word: "channel.faults", Number: true},
			{Word: "channel.jobs", Number: true},
			{Word: "channel.models"},
			{Word: "channel.groups"},
			{Word: "channel.fault"},
		},
	}
	for _, c := range channels {
		state := c.cell(v)
		if c.Pause != nil {
			state.Note = strings.TrimSpace(c.Pause.By + " " + c.Pause.Reason)
		}
		jobs := Cell{}
		if c.Slots != nil {
			jobs = Cell{Text: v.T("channel.slots", "n", c.Slots.Taken, "max", c.Slots.Max), Bar: Share(float64(c.Slots.Taken), float64(c.Slots.Max))}
			if c.Slots.Line > 0 {
				jobs.Note = v.T("channel.line", "n", c.Slots.Line)
			}
		}
		models := strings.Join(c.Served[:min(len(c.Served), shownModels)], ", ")
		if len(c.Served) > shownModels {
			models += " …"
		}
		table.Rows = append(table.Rows, Row{ID: c.Name, Cells: []Cell{
			{Text: c.Name, Link: v.To("channels", c.Name), Note: c.Vendor},
			state, Text(number(c.Calls)), Text(number(c.Faults)), jobs,
			Text(models), Text(strings.Join(c.Groups, ", ")), c.lastOfAll().fault(v),
		}})
	}
	return table, nil
}

// shownModels is how many of a channel's models stand in its row.
const shownModels = 4

// channelData is the page of one channel.
type channelData struct {
	Channel channelState
	State   Cell
	// Fault is its last one, with when that was.
	Fault Cell
	Keys  *Table
	// Tested is what came of a test, nil where there was none.
	Tested *channelTest
}

// channelTest is the outcome of a test.
type channelTest struct {
	OK        bool              `json:"ok"`
	Code      string            `json:"code"`
	Values    map[string]string `json:"values"`
	Operation string            `json:"operation"`
	Key       string            `json:"key"`
	Status    int               `json:"status"`
	Took      float64           `json:"ms"`
	Reason    string            `json:"reason"`
}

// Text is the verdict in the view's language.
func (t *channelTest) Text(v *View) string {
	return v.Finding(t.Code, t.Values)
}

func channelPage() page {
	verb := func(name, done string, body func(v *View) map[string]any) act {
		return act{roles: []Role{Operator}, do: func(v *View) (string, any, error) {
			var sent any
			if body != nil {
				sent = body(v)
			}
			channel := v.R.PathValue("name")
			return Root + "/channels/" + inprocess.Segment(channel) + "?done=" + done, nil, v.Do("POST", "/admin/channels/"+inprocess.Segment(channel)+"/"+name, sent, nil)
		}}
	}
	return page{
		name: "channel", path: "/channels/{name}", roles: staff(), under: "channels",
		show: func(v *View) (any, error) { return readChannel(v) },
		acts: map[string]act{
			"pause": verb("pause", "channel-paused", func(v *View) map[string]any {
				minutes, _ := strconv.Atoi(v.Form.Value("minutes")) // 0 is refused by the API, which names the field
				return map[string]any{"minutes": minutes, "reason": v.Form.Value("reason")}
			}),
			"resume": verb("resume", "channel-resumed", nil),
			"wake":   verb("wake", "channel-woken", nil),
			"test":   {roles: []Role{Operator}, do: testChannel},
		},
	}
}

func readChannel(v *View) (channelData, error) {
	channels, err := readChannels(v)
	if err != nil {
		return channelData{}, err
	}
	name := v.R.PathValue("name")
	at := slices.IndexFunc(channels, func(c channelState) bool { return c.Name == name })
	if at < 0 {
		return channelData{}, &inprocess.Problem{Status: 404}
	}
	c := channels[at]
	data := channelData{Channel: c, State: c.cell(v), Fault: c.lastOfAll().fault(v), Keys: &Table{
		ID: "keys", Caption: "channel.keys", Empty: "channel.keys.none",
		Columns: []Column{{Word: "channel.key"}, {Word: "channel.state"}, {Word: "channel.calls", Number: true}, {Word: "channel.faults", Number: true}, {Word: "channel.fault"}},
	}}
	for _, key := range c.Keys {
		data.Keys.Rows = append(data.Keys.Rows, Row{Cells: []Cell{
			{Text: key.Fingerprint, Code: true}, key.cell(v), Text(number(key.Calls)), Text(number(key.Faults)), key.fault(v),
		}})
	}
	return data, nil
}

// testChannel tests the channel and shows what came of it. A typed key goes to the API and nowhere else.
func testChannel(v *View) (string, any, error) {
	data, err := readChannel(v)
	if err != nil {
		return "", nil, err
	}
	body := map[string]any{}
	if key := v.Form.Value("key"); key != "" {
		body["key"] = key
	}
	err = v.Do("POST", "/admin/channels/"+inprocess.Segment(data.Channel.Name)+"/test", body, &data.Tested)
	return "", data, err
}
