package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"modelrelay/storage/tokens"
)

// printNewToken prints a token with what is shown this once, if anything is. Its group's limits are left out where the
// configuration cannot be read just now: the key would be lost.
func (p *Program) printNewToken(made newToken) error {
	inForce := made.Token
	if cfg, err := p.Load(); err == nil {
		inForce = cfg.GroupLimits()[made.Group].InForce(made.Token)
	}
	made.InForce = shownLimits{inForce.Limits, inForce.Budget}
	if p.JSON {
		return printJSON(p.Stdout, made)
	}
	shown := tokenFields(made.Token, made.InForce)
	var once []string
	if made.Key != "" {
		shown, once = append(shown, [2]string{"key", made.Key}), append(once, "key")
	}
	if made.NewWebhookSecret != "" {
		shown, once = append(shown, [2]string{"webhook secret", made.NewWebhookSecret}), append(once, "webhook secret")
	}
	if err := printFields(p.Stdout, shown); err != nil || len(once) == 0 {
		return err
	}
	_, err := fmt.Fprintf(p.Stderr, "Take note of the %s: shown only now.\n", strings.Join(once, " and "))
	return err
}

// shownLimits are limits as they hold.
type shownLimits struct {
	tokens.Limits

	Budget float64 `json:"budget,omitempty"`
}

// tokenFields shows a token with the limits that hold for it, and says which of them are its group's.
func tokenFields(t tokens.Token, inForce shownLimits) fields {
	ofGroup := func(text string, is bool) string {
		if is {
			return text + " (group)"
		}
		return text
	}
	budget := ""
	if inForce.Budget != 0 {
		budget = ofGroup(strconv.FormatFloat(inForce.Budget, 'f', -1, 64), t.Budget != inForce.Budget)
	}
	list := fields{
		{"name", t.Name},
		{"id", t.ID},
		{"hint", t.Hint},
		{"state", standing(t, time.Now())},
		{"group", t.Group},
		{"models", orAll(t.Models)},
	}
	own := tokens.ListLimits(t.Limits)
	for i, limit := range tokens.ListLimits(inForce.Limits) {
		list = append(list, [2]string{strings.ReplaceAll(limit.Key, "_", " "), ofGroup(limitText(limit), limit.Value != own[i].Value)})
	}
	return append(list, fields{
		{"budget", budget},
		{"weight", count(t.Weight)},
		{"lane", t.Lane},
		{"expires", moment(t.Expires)},
		{"networks", strings.Join(t.Networks, ", ")},
		{"operations", strings.Join(t.Operations, ", ")},
		{"webhook url", t.WebhookURL},
		{"events signed by", signers(t, time.Now())},
		{"created", moment(t.CreatedAt)},
	}...)
}

// limitText shows a limit as it holds; "" for none that was never set.
func limitText(limit tokens.NamedLimit) string {
	switch {
	case limit.Value == tokens.Unlimited:
		return "no limit"
	case limit.Value == 0 && limit.Default > 0:
		return strconv.Itoa(limit.Default) + " (default)"
	}
	return count(limit.Value)
}

// signers says how many secrets sign the token's events, and until when.
func signers(t tokens.Token, now time.Time) string {
	if t.WebhookSecret == "" {
		return ""
	}
	list := []string{"its secret"}
	for _, old := range t.OldWebhookSecrets {
		if now.Before(old.Until) {
			list = append(list, "one before until "+moment(old.Until))
		}
	}
	return strings.Join(list, ", ")
}

// standing is the token's state, with a mark for those of the file.
func standing(t tokens.Token, now time.Time) string {
	state := t.State(now)
	if state == "active" && t.Seeded {
		return "active (file)"
	}
	return state
}

func orAll(names []string) string {
	if len(names) == 0 {
		return "*"
	}
	return strings.Join(names, ", ")
}

type tokenGroupsCmd struct{}

// shownGroup is a group of tokens as the configuration file has it.
type shownGroup struct {
	Name     string      `json:"name"`
	Channels []string    `json:"channels"`
	Defaults shownLimits `json:"defaults"`
	Ceilings shownLimits `json:"ceilings"`
	Forbid   []string    `json:"forbid"`
}

// Run lists the groups. It asks nobody but the file.
func (c *tokenGroupsCmd) Run(p *Program) error {
	cfg, err := p.Load()
	if err != nil {
		return err
	}
	limits := cfg.GroupLimits()
	var list []shownGroup
	for _, name := range cfg.GroupNames() {
		of := limits[name]
		list = append(list, shownGroup{
			Name: name, Channels: append([]string{}, cfg.ChannelsOf(name)...), Forbid: append([]string{}, cfg.Forbids(name)...),
			Defaults: shownLimits{of.Defaults, of.DefaultBudget}, Ceilings: shownLimits{of.Ceilings, of.CeilingBudget},
		})
	}
	return printList(p, list, []string{"GROUP", "CHANNELS", "DEFAULTS", "CEILINGS", "FORBIDS"}, func(group shownGroup) []string {
		return []string{group.Name, strings.Join(group.Channels, ", "), group.Defaults.words(), group.Ceilings.words(), strings.Join(group.Forbid, ", ")}
	})
}

// words are the limits that are set.
func (l shownLimits) words() string {
	var words []string
	for _, limit := range tokens.ListLimits(l.Limits) {
		if limit.Value != 0 {
			words = append(words, limit.Key+" "+strconv.Itoa(limit.Value))
		}
	}
	if l.Budget != 0 {
		words = append(words, "budget "+strconv.FormatFloat(l.Budget, 'f', -1, 64))
	}
	return strings.Join(words, ", ")
}
