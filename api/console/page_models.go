package console

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/console/inprocess"
)

const (
	// mostPrices bounds a price list that somebody sends: the API takes as much.
	mostPrices = 8 << 20
)

// modelPrice is what a model costs; nil is not charged.
type modelPrice struct {
	Input       *float64          `json:"input"`
	CachedInput *float64          `json:"cached_input"`
	Output      *float64          `json:"output"`
	Request     *float64          `json:"request"`
	Image       *float64          `json:"image"`
	AudioSecond *float64          `json:"audio_second"`
	Second      *float64          `json:"second"`
	Video       *float64          `json:"video"`
	Tiers       []json.RawMessage `json:"tiers"`
}

// say writes a price in a few words.
func (p *modelPrice) say(v *View) string {
	if p == nil {
		return ""
	}
	var parts []string
	for _, part := range []struct {
		word   string
		amount *float64
	}{
		{"price.input", p.Input},
		{"price.cached", p.CachedInput},
		{"price.output", p.Output},
		{"price.request", p.Request},
		{"price.image", p.Image},
		{"price.audio", p.AudioSecond},
		{"price.second", p.Second},
		{"price.video", p.Video},
	} {
		if part.amount != nil {
			parts = append(parts, v.T(part.word, "sum", v.Money(part.amount)))
		}
	}
	if len(p.Tiers) > 0 {
		parts = append(parts, v.T("price.tiers", "n", strconv.Itoa(len(p.Tiers))))
	}
	return strings.Join(parts, " · ")
}

type modelUse struct {
	Model    string  `json:"model"`
	Requests int64   `json:"requests"`
	Tasks    int64   `json:"tasks"`
	Failed   int64   `json:"failed"`
	Cost     float64 `json:"cost"`
}

type priceDraft struct {
	YAML string `json:"yaml"`
	Data []struct {
		Model  string      `json:"model"`
		Found  string      `json:"found"`
		Change string      `json:"change"`
		Before *modelPrice `json:"before"`
		After  *modelPrice `json:"after"`
	} `json:"data"`
	Ambiguous []struct {
		Model string   `json:"model"`
		Found []string `json:"found"`
	} `json:"ambiguous"`
	Missing []string `json:"missing"`
}

type modelsData struct {
	Table    *Table
	Unpriced *Table
	Open     string
	UsedAt   time.Time
	Draft    *priceDraft
	Changes  *Table
	Missing  string
}

// modelsPage lists what may be called: all of it for operators, what their token may call for holders.
func modelsPage() page {
	return page{
		name: "models", path: "/models", roles: everybody(), nav: "models", key: "m",
		show: func(v *View) (any, error) { return showModels(v) },
		csv:  func(_ *View, data any) (*Table, error) { return data.(*modelsData).Table, nil }, //nolint:forcetypeassert // of show
		acts: map[string]act{"draft": {roles: []Role{Operator}, do: draftPrices, most: mostPrices}},
	}
}

func showModels(v *View) (*modelsData, error) {
	if v.Who.Role == Holder {
		return showOwnModels(v)
	}
	var list struct {
		Data []struct {
			ID       string   `json:"id"`
			AliasOf  string   `json:"alias_of"`
			Formats  []string `json:"formats"`
			Groups   []string `json:"groups"`
			Channels []struct {
				Name  string   `json:"name"`
				State string   `json:"state"`
				Usual *float64 `json:"usual_seconds"`
			} `json:"channels"`
			Video *tryVideo   `json:"video"`
			Price *modelPrice `json:"price"`
			Use   *modelUse   `json:"last_30_days"`
		} `json:"data"`
		Open     []string   `json:"open"`
		Unpriced []modelUse `json:"unpriced"`
		UsedAt   time.Time  `json:"used_at"`
	}
	if err := v.Get("/admin/models", nil, &list); err != nil {
		return nil, err
	}
	data := &modelsData{Open: strings.Join(list.Open, ", "), UsedAt: list.UsedAt}
	data.Table = &Table{
		ID: "models", Caption: "models.caption", Empty: "models.empty", CSV: true,
		Columns: []Column{
			{Word: "model.id"},
			{Word: "model.formats"},
			{Word: "model.serves"},
			{Word: "model.groups"},
			{Word: "model.price"},
			{Word: "model.usual", Number: true},
			{Word: "model.use", Number: true},
			{Word: "usage.cost", Number: true},
		},
	}
	for _, model := range list.Data {
		if q := v.Query("q"); q != "" && !strings.Contains(strings.ToLower(model.ID), strings.ToLower(q)) {
			continue
		}
		name := Cell{Text: model.ID}
		if v.May() {
			name.Link = tryLink(v, tryModel{ID: model.ID, Video: model.Video})
		}
		if model.AliasOf != "" {
			name.Note = v.T("model.alias", "name", model.AliasOf)
		}
		// The first that is not resting answers now.
		var serves, others []string
		usual := Cell{}
		for _, channel := range model.Channels {
			if (channel.State == "closed" || channel.State == "") && serves == nil {
				serves = append(serves, channel.Name)
			} else {
				others = append(others, channel.Name)
			}
			if channel.Usual != nil && usual.Text == "" {
				usual.Text = Lasted(1000 * *channel.Usual)
			}
		}
		who := Cell{Text: strings.Join(serves, ""), Mark: "working", Note: strings.Join(others, ", ")}
		if serves == nil {
			who = Cell{Word: "model.nobody", Mark: "failed", Note: strings.Join(others, ", ")}
		}
		price := Cell{Text: model.Price.say(v)}
		if price.Text == "" {
			price = Cell{Word: "model.free", Mark: "waiting"}
		}
		use, cost := Cell{}, Cell{}
		if model.Use != nil {
			use.Text, cost.Text = number(model.Use.Requests+model.Use.Tasks), v.Money(model.Use.Cost)
		}
		data.Table.Rows = append(data.Table.Rows, Row{ID: model.ID, Cells: []Cell{
			name, formatsCell(model.Formats), who, {Text: strings.Join(model.Groups, ", ")}, price, usual, use, cost,
		}})
	}
	if len(list.Unpriced) > 0 {
		data.Unpriced = &Table{ID: "unpriced", Caption: "models.unpriced", Columns: []Column{{Word: "model.id"}, {Word: "usage.requests", Number: true}, {Word: "usage.tasks", Number: true}}}
		for _, use := range list.Unpriced {
			data.Unpriced.Rows = append(data.Unpriced.Rows, Row{ID: use.Model, Cells: []Cell{{Text: use.Model}, {Text: number(use.Requests)}, {Text: number(use.Tasks)}}})
		}
	}
	return data, nil
}

// showOwnModels lists what a holder's token may call.
func showOwnModels(v *View) (*modelsData, error) {
	var list struct {
		Data []struct {
			ID      string    `json:"id"`
			OwnedBy string    `json:"owned_by"`
			Video   *tryVideo `json:"video"`
		} `json:"data"`
	}
	if err := v.Get("/v1/models", nil, &list); err != nil {
		return nil, err
	}
	table := &Table{ID: "models", Caption: "models.own", Empty: "models.own.empty", CSV: true, Columns: []Column{{Word: "model.id"}, {Word: "model.vendor"}}}
	for _, model := range list.Data {
		table.Rows = append(table.Rows, Row{ID: model.ID, Cells: []Cell{{Text: model.ID, Code: true, Link: tryLink(v, tryModel{ID: model.ID, Video: model.Video})}, {Text: model.OwnedBy}}})
	}
	return &modelsData{Table: table}, nil
}

// draftPrices shows what a public price list would change.
func draftPrices(v *View) (string, any, error) {
	text := v.Form.values.Get("list")
	if file, _, err := v.R.FormFile("file"); err == nil {
		defer file.Close()
		raw, err := io.ReadAll(io.LimitReader(file, mostPrices))
		if err != nil {
			return "", nil, &inprocess.Problem{Status: http.StatusBadRequest, Message: v.T("prices.unread"), Param: "file"}
		}
		if len(raw) > 0 {
			text = string(raw)
		}
	}
	if !json.Valid([]byte(text)) {
		return "", nil, &inprocess.Problem{Status: http.StatusBadRequest, Message: v.T("prices.unread"), Param: "file"}
	}
	draft := new(priceDraft)
	if err := v.Do(http.MethodPost, "/admin/prices/draft", json.RawMessage(text), draft); err != nil {
		if problem := inprocess.AsProblem(err); problem != nil && problem.Status == http.StatusBadRequest { // nothing else of a list is refused
			problem.Message, problem.Param = v.T("prices.unknown"), "file"
		}
		return "", nil, err
	}
	data, err := showModels(v)
	if err != nil {
		return "", nil, err
	}
	data.Draft, data.Missing = draft, strings.Join(draft.Missing, ", ")
	data.Changes = &Table{ID: "changes", Caption: "prices.changes", Empty: "prices.nothing", Columns: []Column{{Word: "model.id"}, {Word: "prices.change"}, {Word: "prices.before"}, {Word: "prices.after"}, {Word: "prices.found"}}}
	for _, row := range draft.Data {
		marks := map[string]string{"new": "hand", "changed": "hand", "same": "done"}
		data.Changes.Rows = append(data.Changes.Rows, Row{ID: row.Model, Cells: []Cell{
			{Text: row.Model}, {Word: "prices.change." + row.Change, Mark: cmp.Or(marks[row.Change], "waiting")}, {Text: row.Before.say(v)}, {Text: row.After.say(v)}, {Text: row.Found, Code: true},
		}})
	}
	for _, row := range draft.Ambiguous {
		data.Changes.Rows = append(data.Changes.Rows, Row{ID: row.Model, Cells: []Cell{
			{Text: row.Model}, {Word: "prices.change.ambiguous", Mark: "waiting"}, {}, {}, {Text: strings.Join(row.Found, ", "), Code: true},
		}})
	}
	return "", data, nil
}

// tryLink leads to where a model is tried, "" for one that no kind of try is for.
func tryLink(v *View, model tryModel) string {
	for _, kind := range tryKinds() {
		if model.serves(kind) {
			return v.To("try") + "?" + url.Values{"kind": {kind}, "model": {model.ID}}.Encode()
		}
	}
	return ""
}

// formatsCell names the formats, without their operations.
func formatsCell(formats []string) Cell {
	names := make([]string, len(formats))
	for i, format := range formats {
		names[i], _, _ = strings.Cut(format, ".")
	}
	return Cell{Text: strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), ", ")}
}
