package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/operator"
	"modelrelay/providers/health"
)

// Models is gateway models.
type Models struct {
	remote

	Q        string `help:"Models whose name contains this text." placeholder:"TEXT"`
	Limit    int    `help:"List at most this many models; 0: all." default:"0"`
	Unpriced bool   `help:"List only the models that were used within 30 days and have no price."`
}

// Run lists the models of all groups, with their channels and prices.
func (c *Models) Run(ctx context.Context, p *Program) error {
	var list operator.ModelList
	if err := p.ask(ctx, "/admin/models", url.Values{"limit": {"1"}}, &list); err != nil {
		return err
	}
	if c.Unpriced {
		return printList(p, list.Unpriced, []string{"MODEL", "CALLS", "TASKS", "FAILED"}, func(u operator.UnpricedModel) []string {
			return []string{u.Model, count(u.Requests), count(u.Tasks), count(u.Failed)}
		})
	}
	_, models, err := askPages[operator.Model](ctx, p, "/admin/models", filters("q", c.Q), c.Limit)
	if err != nil {
		return err
	}
	list.Data, list.HasMore, list.After = models, false, nil
	head := []string{"MODEL", "FORMATS", "GROUPS", "CHANNELS", "PRICE", "CALLS 30D", "TASKS 30D", "COST 30D"}
	err = p.show(list, func() error { return printTable(p.Stdout, head, rowsOf(list.Data, modelCells)) })
	if err != nil || p.JSON {
		return err
	}
	if len(list.Open) > 0 {
		fmt.Fprintf(p.Stderr, "Channels that also accept other model names: %s.\n", strings.Join(list.Open, ", "))
	}
	if n := len(list.Unpriced); n > 0 {
		fmt.Fprintf(p.Stderr, "Used without a price: %s. See gateway models --unpriced\n", Counted(n, "model"))
	}
	return nil
}

func modelCells(m operator.Model) []string {
	name := m.ID
	if m.AliasOf != "" {
		name += " (" + m.AliasOf + ")"
	}
	channels := make([]string, 0, len(m.Channels)+1)
	for _, channel := range m.Channels {
		text := channel.Name
		if channel.State != "" && channel.State != health.StateClosed {
			text += " " + channel.State
		}
		if channel.UsualSeconds != nil {
			text += " ~" + time.Duration(*channel.UsualSeconds*float64(time.Second)).Round(time.Second).String()
		}
		channels = append(channels, text)
	}
	if m.MoreChannels > 0 {
		channels = append(channels, fmt.Sprintf("and %d more", m.MoreChannels))
	}
	cells := []string{
		name, strings.Join(m.Formats, " "), strings.Join(m.Groups, " "), strings.Join(channels, ", "), priceText(m.Price), "",
		"", "",
	}
	if m.LastMonth != nil {
		cells[5], cells[6], cells[7] = count(m.LastMonth.Requests), count(m.LastMonth.Tasks), m.LastMonth.Cost.String()
	}
	return cells
}

// priceText lists the parts of a price; "" for a model without a price.
func priceText(price *operator.ModelPrice) string {
	if price == nil {
		return ""
	}
	var parts []string
	for _, part := range price.Parts() {
		parts = append(parts, part.Name+" "+string(part.Amount))
	}
	if n := len(price.Tiers); n > 0 {
		parts = append(parts, strconv.Itoa(n)+" tiers")
	}
	return strings.Join(parts, ", ")
}

// Prices is gateway prices.
type Prices struct {
	Draft pricesDraftCmd `cmd:"" help:"Draft the prices section from models.dev's public price list. Nothing is fetched and nothing is changed."`
}

type pricesDraftCmd struct {
	remote

	File string `arg:"" type:"existingfile" help:"The api.json of models.dev."`
}

// Run prints lines for the configuration file, and the changes that they make.
func (c *pricesDraftCmd) Run(ctx context.Context, p *Program) error {
	file, err := os.Open(c.File)
	if err != nil {
		return &UsageError{Err: err}
	}
	content, err := readAll(file, operator.MostPriceList)
	_ = file.Close() // only read
	if err == nil && !json.Valid(content) {
		err = errors.New("is not JSON")
	}
	if err != nil {
		return &UsageError{Err: fmt.Errorf("%s: %w", c.File, err)}
	}
	var draft operator.PriceDraft
	if err := p.call(ctx, http.MethodPost, "/admin/prices/draft", json.RawMessage(content), &draft); err != nil {
		return err
	}
	if p.JSON {
		return printJSON(p.Stdout, draft)
	}
	if _, err := fmt.Fprint(p.Stdout, draft.YAML); err != nil {
		return err
	}
	var rows [][]string
	for _, change := range draft.Data {
		if change.Change != operator.PriceSame {
			rows = append(rows, []string{change.Model, change.Found, change.Change, priceText(change.Before), priceText(change.After)})
		}
	}
	for _, one := range draft.Ambiguous {
		rows = append(rows, []string{one.Model, strings.Join(one.Found, ", "), "ambiguous"})
	}
	fmt.Fprintf(p.Stderr, "From models.dev: %d of %d models change.\n", strings.Count(draft.YAML, "\n")-min(1, len(draft.YAML)),
		len(draft.Data)+len(draft.Ambiguous)+len(draft.Missing))
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
