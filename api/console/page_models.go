package console

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/providers/router"
	"modelrelay/storage/tokens"
)

const mostChanges = 500

func priceText(v *View, p *operator.ModelPrice) string {
	if p == nil {
		return ""
	}
	var parts []string
	for _, part := range p.Parts() {
		parts = append(parts, v.T("price."+part.Name, "sum", v.Money(part.Amount)))
	}
	if len(p.Tiers) > 0 {
		parts = append(parts, v.T("price.tiers", "n", strconv.Itoa(len(p.Tiers))))
	}
	return strings.Join(parts, " · ")
}

type modelsData struct {
	Table    *Table
	Unpriced *Table
	Open     string
	UsedAt   *time.Time
	Draft    *operator.PriceDraft
	Changes  *Table
	Missing  string
}

// modelsPage lists models: all for operators, those of their token for holders.
func modelsPage() page {
	return page{
		name: "models", path: "/models", roles: allRoles(), nav: "models", key: "m",
		show: func(v *View) (any, error) { return showModels(v) },
		csv:  func(data any) *Table { return data.(*modelsData).Table }, //nolint:forcetypeassert // of show
		acts: map[string]act{"draft": {roles: []edge.Role{Operator}, do: draftPrices, most: operator.MostPriceList}},
	}
}

func showModels(v *View) (*modelsData, error) {
	if v.User.Role == Holder {
		return showOwnModels(v)
	}
	list, err := v.s.o.Operator.ListModels(v.R.Context(), v.actor(), v.namesOf())
	if err != nil {
		return nil, err
	}
	data := &modelsData{Open: some(list.Open, shownNames), UsedAt: list.UsedAt}
	data.Table = &Table{
		ID: "models", Caption: "models.caption", Empty: "models.empty", CSV: true, Next: v.next(list.After),
		Columns: columns("model.id", "model.formats", "model.serves", "model.groups", "model.price", "#model.usual", "#model.use", "#usage.cost"),
	}
	for _, model := range list.Data {
		addModel(v, data.Table, model)
	}
	if len(list.Unpriced) > 0 {
		data.Unpriced = &Table{ID: "unpriced", Caption: "models.unpriced", Columns: columns("model.id", "#usage.requests", "#usage.tasks")}
		for _, use := range list.Unpriced {
			data.Unpriced.add(use.Model, use.Model, use.Requests, use.Tasks)
		}
	}
	return data, nil
}

func addModel(v *View, table *Table, model operator.Model) {
	name := Cell{Text: model.ID}
	if v.CanChange() {
		name.Link = tryLink(v, model)
	}
	if model.AliasOf != "" {
		name.Note = v.T("model.alias", "name", model.AliasOf)
	}
	// The first channel that does not cool down serves the model now.
	var serving, usual, use, cost string
	var others []string
	for _, channel := range model.Channels {
		if serving == "" && answers(channel) {
			serving = channel.Name
		} else {
			others = append(others, channel.Name)
		}
		if channel.UsualSeconds != nil && usual == "" {
			usual = Lasted(1000 * *channel.UsualSeconds)
		}
	}
	if model.MoreChannels > 0 {
		others = append(others, v.T("model.more", "n", number(model.MoreChannels)))
	}
	channels := Cell{Text: serving, Mark: "working", Note: strings.Join(others, ", ")}
	if serving == "" {
		channels.Word, channels.Mark = "model.unserved", "failed"
	}
	price := Cell{Text: priceText(v, model.Price)}
	if price.Text == "" {
		price = Cell{Word: "model.free", Mark: "waiting"}
	}
	if model.LastMonth != nil {
		use, cost = number(model.LastMonth.Requests+model.LastMonth.Tasks), v.Money(model.LastMonth.Cost)
	}
	table.add(model.ID, name, formatsOf(model.Formats), channels, some(model.Groups, shownGroups), price, usual, use, cost)
}

func showOwnModels(v *View) (*modelsData, error) {
	token, err := v.holder(1)
	if err != nil {
		return nil, err
	}
	models, next, err := ownModels(v, token, *v.namesOf())
	if err != nil {
		return nil, err
	}
	table := &Table{
		ID: "models", Caption: "models.own", Empty: "models.own.empty", CSV: true, Next: v.next(next),
		Columns: columns("model.id", "model.vendor"),
	}
	for _, model := range models {
		table.add(model.ID, Cell{Text: model.ID, Code: true, Link: tryLink(v, ownTryModel(model))}, model.Vendor)
	}
	return &modelsData{Table: table}, nil
}

// ownModels returns a page of the models that a token can call, and the next cursor.
func ownModels(v *View, token *tokens.Token, in operator.NamesOf) (found []router.Model, next *string, err error) {
	all := v.s.o.Account.Models(token)
	names := make([]string, len(all))
	for i, model := range all {
		names[i] = model.ID
	}
	page, next, err := in.Page(names)
	for _, name := range page {
		if at, known := slices.BinarySearch(names, name); known {
			found = append(found, all[at])
		}
	}
	return found, next, err
}

// draftPrices shows the changes that a public price list would make.
func draftPrices(v *View) (string, any, error) {
	file, _, err := v.R.FormFile("file")
	if err != nil {
		return "", nil, invalid("file", v.T("prices.unread"))
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, operator.MostPriceList))
	if err != nil || !json.Valid(text) {
		return "", nil, invalid("file", v.T("prices.unread"))
	}
	draft, err := v.s.o.Operator.DraftPrices(v.R.Context(), v.actor(), &operator.PriceOffers{Body: text})
	if problem := v.problem(err); problem != nil && problem.Status == http.StatusBadRequest { // only the list can be invalid
		err = invalid("file", v.T("prices.unknown"))
	}
	if err != nil {
		return "", nil, err
	}
	data, err := showModels(v)
	if err != nil {
		return "", nil, err
	}
	data.Draft, data.Missing = &draft, some(draft.Missing, shownNames)
	data.Changes = &Table{ID: "changes", Caption: "prices.changes", Empty: "prices.nothing", Columns: columns(
		"model.id", "prices.change", "prices.before", "prices.after", "prices.found",
	)}
	marks := map[string]string{operator.PriceNew: "warning", operator.PriceChanged: "warning", operator.PriceSame: "done"}
	for _, row := range draft.Data[:min(len(draft.Data), mostChanges)] {
		change := Cell{Word: "prices.change." + row.Change, Mark: marks[row.Change]}
		data.Changes.add(row.Model, row.Model, change, priceText(v, row.Before), priceText(v, row.After), Cell{Text: row.Found, Code: true})
	}
	for _, row := range draft.Ambiguous[:min(len(draft.Ambiguous), mostChanges)] {
		data.Changes.add(row.Model, row.Model, Cell{Word: "prices.change.ambiguous", Mark: "waiting"}, "", "",
			Cell{Text: strings.Join(row.Found, ", "), Code: true})
	}
	return "", data, nil
}

// tryLink returns the address at which a model can be tried, "" if no kind of try supports it.
func tryLink(v *View, model operator.Model) string {
	for _, kind := range tryKinds() {
		if serves(model, kind) {
			return v.List("try", "kind", kind, "model", model.ID)
		}
	}
	return ""
}

// formatsOf lists the formats, without their operations.
func formatsOf(formats []string) string {
	names := make([]string, len(formats))
	for i, format := range formats {
		names[i], _, _ = strings.Cut(format, ".")
	}
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), ", ")
}
