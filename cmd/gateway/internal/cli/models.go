package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/admin"
)

// Models is gateway models.
type Models struct {
	remote

	Unpriced bool `help:"List the models that were used within 30 days and have no price instead."`
}

// listedModel is a model as the operation lists it.
type listedModel struct {
	ID       string
	AliasOf  string `json:"alias_of"`
	Formats  []string
	Groups   []string
	Channels []struct {
		Name, State string
		Usual       float64 `json:"usual_seconds"`
	}
	Price map[string]json.RawMessage
	Use   *modelUse `json:"last_30_days"`
}

// modelUse is what a model was used for in 30 days.
type modelUse struct {
	Requests, Tasks, Failed int64
	Cost                    json.Number
}

// Run lists the models of all groups, who serves them, and what they cost.
func (c *Models) Run(ctx context.Context, p *Program) error {
	var document json.RawMessage
	if err := p.ask(ctx, "/admin/models", nil, &document); err != nil {
		return err
	}
	var list struct {
		Data     []json.RawMessage
		Unpriced []json.RawMessage
		Open     []string
	}
	if err := json.Unmarshal(document, &list); err != nil {
		return fmt.Errorf("read the models: %w", err)
	}
	if c.Unpriced {
		type use struct {
			Model string
			modelUse
		}
		return printRows(p, list.Unpriced, []string{"MODEL", "CALLS", "TASKS", "FAILED"}, func(u use) []string {
			return []string{u.Model, number(u.Requests), number(u.Tasks), number(u.Failed)}
		})
	}
	if p.JSON {
		return printJSON(p.Stdout, document)
	}
	head := []string{"MODEL", "FORMATS", "GROUPS", "CHANNELS", "PRICE", "CALLS 30D", "TASKS 30D", "COST 30D"}
	if err := printRows(p, list.Data, head, modelCells); err != nil {
		return err
	}
	if len(list.Open) > 0 {
		fmt.Fprintf(p.Stderr, "Channels that take other names as well: %s.\n", strings.Join(list.Open, ", "))
	}
	if n := len(list.Unpriced); n > 0 {
		fmt.Fprintf(p.Stderr, "Used without a price: %s. See gateway models --unpriced\n", Counted(n, "model"))
	}
	return nil
}

func modelCells(m listedModel) []string {
	name := m.ID
	if m.AliasOf != "" {
		name += " (" + m.AliasOf + ")"
	}
	channels := make([]string, 0, len(m.Channels))
	for _, channel := range m.Channels {
		text := channel.Name
		if channel.State != "" && channel.State != "closed" {
			text += " " + channel.State
		}
		if channel.Usual > 0 {
			text += " ~" + time.Duration(channel.Usual*float64(time.Second)).Round(time.Second).String()
		}
		channels = append(channels, text)
	}
	cells := []string{name, strings.Join(m.Formats, " "), strings.Join(m.Groups, " "), strings.Join(channels, ", "), priceText(m.Price), "", "", ""}
	if m.Use != nil {
		cells[5], cells[6], cells[7] = number(m.Use.Requests), number(m.Use.Tasks), m.Use.Cost.String()
	}
	return cells
}

// priceText are the parts of a price that are charged; "" for a model without one.
func priceText(price map[string]json.RawMessage) string {
	var parts []string
	for _, name := range []string{"input", "cached_input", "output", "request", "image", "audio_second", "second", "video"} {
		if raw := strings.Trim(string(price[name]), `"`); raw != "" && raw != "null" {
			parts = append(parts, name+" "+raw)
		}
	}
	var tiers []json.RawMessage
	if json.Unmarshal(price["tiers"], &tiers) == nil && len(tiers) > 0 {
		parts = append(parts, strconv.Itoa(len(tiers))+" tiers")
	}
	return strings.Join(parts, ", ")
}

// Prices is gateway prices.
type Prices struct {
	Draft pricesDraftCmd `cmd:"" help:"Draft the prices section from models.dev's public price list. Nothing is fetched and nothing is changed."`
}

type pricesDraftCmd struct {
	remote

	File string `arg:"" type:"existingfile" help:"The list: models.dev's api.json."`
}

// Run prints lines for the configuration file, and next to them what they change.
func (c *pricesDraftCmd) Run(ctx context.Context, p *Program) error {
	file, err := os.Open(c.File)
	if err != nil {
		return &UsageError{Err: err}
	}
	content, err := readAll(file, admin.MostPriceList)
	_ = file.Close() // which was read
	if err == nil && !json.Valid(content) {
		err = errors.New("is no JSON")
	}
	if err != nil {
		return &UsageError{Err: fmt.Errorf("%s: %w", c.File, err)}
	}
	var document json.RawMessage
	if err := p.call(ctx, http.MethodPost, "/admin/prices/draft", json.RawMessage(content), &document); err != nil {
		return err
	}
	if p.JSON {
		return printJSON(p.Stdout, document)
	}
	var draft struct {
		YAML string
		Data []struct {
			Model, Found, Change string
			Before, After        map[string]json.RawMessage
		}
		Missing   []string
		Ambiguous []struct {
			Model string
			Found []string
		}
	}
	if err := json.Unmarshal(document, &draft); err != nil {
		return fmt.Errorf("read the draft: %w", err)
	}
	if _, err := fmt.Fprint(p.Stdout, draft.YAML); err != nil {
		return err
	}
	var rows [][]string
	for _, change := range draft.Data {
		if change.Change != "same" {
			rows = append(rows, []string{change.Model, change.Found, change.Change, priceText(change.Before), priceText(change.After)})
		}
	}
	for _, one := range draft.Ambiguous {
		rows = append(rows, []string{one.Model, strings.Join(one.Found, ", "), "ambiguous"})
	}
	fmt.Fprintf(p.Stderr, "From models.dev: %d of %d models change.\n", strings.Count(draft.YAML, "\n")-min(1, len(draft.YAML)), len(draft.Data)+len(draft.Ambiguous)+len(draft.Missing))
	if len(rows) > 0 {
		if err := printTable(p.Stderr, []string{"MODEL", "IN THE LIST", "CHANGE", "BEFORE", "AFTER"}, rows); err != nil {
			return err
		}
	}
	if len(draft.Missing) > 0 {
		fmt.Fprintf(p.Stderr, "Not in the list: %s.\n", strings.Join(draft.Missing, ", "))
	}
	return nil
}
