package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"modelrelay/storage/tokens"
)

// printNewToken prints a token with what is shown this once, if anything is.
func (p *Program) printNewToken(made newToken) error {
	if p.JSON {
		return printJSON(p.Stdout, made)
	}
	shown := tokenFields(made.Token)
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

func tokenFields(t tokens.Token) fields {
	budget := ""
	if t.Budget != 0 {
		budget = strconv.FormatFloat(t.Budget, 'f', -1, 64)
	}
	list := fields{
		{"name", t.Name},
		{"id", t.ID},
		{"hint", t.Hint},
		{"state", standing(t, time.Now())},
		{"group", t.Group},
		{"models", orAll(t.Models)},
	}
	for _, limit := range tokens.ListLimits(t.Limits) {
		list = append(list, [2]string{strings.ReplaceAll(limit.Key, "_", " "), limitText(limit)})
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
