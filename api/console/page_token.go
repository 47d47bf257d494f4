package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/console/inprocess"
	"modelrelay/api/console/snippets"
)

// tokenData is one token, or the form of a new one.
type tokenData struct {
	Token Token
	New   bool
	// Secret is what this answer alone shows.
	Secret *shownOnce
	// Now are the models that it may call, as the gateway tells its holder; Unread says why they are not there.
	Now    []string
	Unread string
	// Groups are those that a form offers; nil: they could not be read.
	Groups []tokenGroup
	// Link is the answer of this page alone.
	Link string
	// Month is what it used in thirty days, Recent its last calls, tasks and changes; nil for a new one.
	Month  *month
	Recent []recent
}

// shownOnce is a new key or webhook secret, with all that a client needs beside it.
type shownOnce struct {
	Key, WebhookSecret string
	Base               string
	Snippets           []snippets.Program
}

// All is what "copy all" copies: what a program's environment wants.
func (s *shownOnce) All() string {
	var lines []string
	if s.Key != "" {
		lines = append(lines, "GATEWAY_TOKEN="+s.Key, "OPENAI_API_KEY="+s.Key, "OPENAI_BASE_URL="+s.Base+"/v1", "ANTHROPIC_BASE_URL="+s.Base)
	}
	if s.WebhookSecret != "" {
		lines = append(lines, "WEBHOOK_SECRET="+s.WebhookSecret)
	}
	return strings.Join(lines, "\n")
}

// newTokenPage is the form of a new token.
func newTokenPage() page {
	return page{
		name: "token", path: "/tokens/new", roles: []Role{Operator}, under: "tokens",
		show: func(v *View) (any, error) {
			data := tokenData{New: true, Token: Token{Group: "default", TokenRest: TokenRest{Weight: 1, Lane: "normal"}}}
			if like := v.Query("like"); like != "" {
				if err := v.Get(tokenPath(like), nil, &data.Token); err != nil {
					return nil, err
				}
				data.Token.Name, data.Token.ID, data.Token.Seeded = "", "", false
			}
			data.Groups = groupsFor(v, data.Token.Group)
			return data, nil
		},
		acts: map[string]act{"create": {roles: []Role{Operator}, do: createToken}},
	}
}

// tokenPage is one token.
func tokenPage() page {
	operators := []Role{Operator}
	return page{
		name: "token", path: "/tokens/{token}", roles: staff(), under: "tokens",
		show: showToken,
		acts: map[string]act{
			"change": {roles: operators, do: func(v *View) (string, any, error) {
				change, err := tokenChange(v, false)
				if err == nil {
					err = v.Do(http.MethodPatch, tokenPath(v.R.PathValue("token")), change, nil)
				}
				return tokenHere(v, "token-changed"), nil, err
			}},
			"disable": {roles: operators, do: func(v *View) (string, any, error) {
				return tokenHere(v, "token-disabled"), nil, v.Do(http.MethodPatch, tokenPath(v.R.PathValue("token")), map[string]any{"disabled": true}, nil)
			}},
			"enable": {roles: operators, do: func(v *View) (string, any, error) {
				return tokenHere(v, "token-enabled"), nil, v.Do(http.MethodPatch, tokenPath(v.R.PathValue("token")), map[string]any{"disabled": false}, nil)
			}},
			"rotate": {roles: operators, do: func(v *View) (string, any, error) { return tokenSecret(v, "/rotate") }},
			"secret": {roles: operators, do: func(v *View) (string, any, error) { return tokenSecret(v, "/rotate-webhook-secret") }},
			"revoke": {roles: operators, do: func(v *View) (string, any, error) {
				var token Token
				if err := v.Get(tokenPath(v.R.PathValue("token")), nil, &token); err != nil {
					return "", nil, err
				}
				if v.Form.Value("typed") != token.Name {
					return "", nil, &inprocess.Problem{Status: http.StatusBadRequest, Message: v.T("token.revoke.typed", "name", token.Name)}
				}
				return Root + "/tokens?done=token-revoked", nil, v.Do(http.MethodDelete, tokenPath(token.ID), nil, nil)
			}},
			"link": {roles: operators, do: tokenLink},
		},
	}
}

func tokenPath(id string) string { return "/admin/tokens/" + inprocess.Segment(id) }

func tokenHere(v *View, done string) string {
	return Root + "/tokens/" + inprocess.Segment(v.R.PathValue("token")) + "?done=" + done
}

func showToken(v *View) (any, error) {
	var data tokenData
	if err := v.Get(tokenPath(v.R.PathValue("token")), nil, &data.Token); err != nil {
		return nil, err
	}
	if data.Token.State == "active" {
		data.Now, data.Unread = modelsOf(v, data.Token.ID)
	}
	data.Groups = groupsFor(v, data.Token.Group)
	month, err := monthOf(v, data.Token.ID)
	if err != nil {
		return nil, err
	}
	data.Month = &month
	calls, err := lastCallsOf(v, data.Token)
	if err != nil {
		return nil, err
	}
	tasks, err := recentTasks(v, data.Token.ID)
	if err != nil {
		return nil, err
	}
	changes, err := recentAudit(v, data.Token.ID)
	data.Recent = []recent{calls, tasks, changes}
	return data, err
}

// lastCallsOf are the calls of a token around its last use: the log is looked through back to an hour before that, and no further.
func lastCallsOf(v *View, token Token) (recent, error) {
	query := url.Values{"token": {token.ID}}
	if token.LastUsed == nil {
		return recent{Word: "token.calls", Table: callsTable(v, nil), Link: v.To("calls") + "?" + query.Encode()}, nil
	}
	query.Set("since", token.LastUsed.Add(-time.Hour).UTC().Format(time.RFC3339))
	return recentCalls(v, "token.calls", query)
}

// modelsOf are the models that a token may call, as its holder is told.
func modelsOf(v *View, id string) (names []string, unread string) {
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := v.DoAs(v.LookingAt(id), http.MethodGet, "/v1/models", nil, &list); err != nil {
		return nil, err.Error()
	}
	for _, model := range list.Data {
		names = append(names, model.ID)
	}
	slices.Sort(names)
	return names, ""
}

// createToken makes a token; its key is in the answer and nowhere else.
func createToken(v *View) (string, any, error) {
	change, err := tokenChange(v, true)
	if err != nil {
		return "", nil, err
	}
	change["name"] = v.Form.Value("name")
	var data tokenData
	if err := v.Do(http.MethodPost, "/admin/tokens", change, &data.Token); err != nil {
		return "", nil, err
	}
	data.once(v)
	return "", data, nil
}

// tokenSecret gives a token a new key or webhook secret, which is in the answer and nowhere else.
func tokenSecret(v *View, verb string) (string, any, error) {
	var data tokenData
	if err := v.Do(http.MethodPost, tokenPath(v.R.PathValue("token"))+verb, nil, &data.Token); err != nil {
		return "", nil, err
	}
	data.once(v)
	return "", data, nil
}

// once takes the secrets out of the token, so that they are written at one place.
func (d *tokenData) once(v *View) {
	base := v.s.base(v.R)
	d.Now, d.Unread = modelsOf(v, d.Token.ID)
	model := "gpt-4o-mini"
	if len(d.Now) > 0 && !slices.Contains(d.Now, model) {
		model = d.Now[0]
	}
	d.Secret = &shownOnce{Key: d.Token.Key, WebhookSecret: d.Token.WebhookSecret, Base: base}
	if d.Secret.Key != "" {
		d.Secret.Snippets = snippets.For(base, snippets.Chat, model, "Hello")
	}
	d.Token.Key, d.Token.WebhookSecret = "", ""
}

// tokenLink makes a link by which the token's holder signs in.
func tokenLink(v *View) (string, any, error) {
	data, err := showToken(v)
	if err != nil {
		return "", nil, err
	}
	token := data.(tokenData) //nolint:forcetypeassert // of showToken
	if token.Token.State != "active" {
		return "", nil, &inprocess.Problem{Status: http.StatusConflict, Message: v.T("token.link.state")}
	}
	code, err := v.s.o.Sessions.Offer(v.R.Context(), "token", token.Token.ID, linkLasts)
	if err != nil {
		return "", nil, err
	}
	v.s.note(v, Act{Who: v.Who, What: linkWord, Subject: token.Token.ID})
	token.Link = v.s.base(v.R) + Root + "/enter/" + code
	return "", token, nil
}

// tokenChange reads the form of a token. What the API would refuse, it refuses; here are only numbers that are none.
func tokenChange(v *View, fresh bool) (map[string]any, error) {
	change := map[string]any{
		"group": v.Form.Value("group"), "models": splitList(v.Form.Value("models")), "networks": splitList(v.Form.Value("networks")), "operations": v.Form.values["operations"],
		"lane": v.Form.Value("lane"), "webhook_url": v.Form.Value("webhook_url"), "expires": v.Form.Value("expires"),
	}
	if v.Form.values["operations"] == nil || len(v.Form.values["operations"]) == 3 { // all of them is no limit
		change["operations"] = []string{}
	}
	for _, field := range append(limitFields(), "weight") {
		text := v.Form.Value(field)
		if text == "" && field == "weight" {
			text = "1"
		}
		n, err := strconv.Atoi(orZero(text))
		if err != nil {
			return nil, &inprocess.Problem{Status: http.StatusBadRequest, Param: field, Message: v.T("token.number")}
		}
		change[field] = n
	}
	budget, err := strconv.ParseFloat(orZero(v.Form.Value("budget")), 64)
	if err != nil {
		return nil, &inprocess.Problem{Status: http.StatusBadRequest, Param: "budget", Message: v.T("token.number")}
	}
	change["budget"] = budget
	switch version, err := strconv.ParseInt(v.Form.Value("version"), 10, 64); {
	case fresh:
		if change["webhook_url"] != "" {
			change["webhook_secret"] = "new"
		}
	case err == nil:
		change["version"] = version
	}
	return change, nil
}

// limitFields are the limits that the form has, in its order.
func limitFields() []string {
	return []string{"requests_per_minute", "tokens_per_minute", "concurrency", "max_tasks", "max_sockets", "reads_per_minute", "max_watchers"}
}

func orZero(text string) string {
	if text == "" {
		return "0"
	}
	return text
}

// splitList splits a list that a person typed.
func splitList(text string) []string {
	list := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' || r == '\t' || r == '\uff0c' })
	if list == nil {
		return []string{}
	}
	return list
}

// values are the limits in the order of limitFields.
func (l TokenLimits) values() []int {
	return []int{l.RequestsPerMinute, l.TokensPerMinute, l.Concurrency, l.MaxTasks, l.MaxSockets, l.ReadsPerMinute, l.MaxWatchers}
}

// Fields are the limits of the form with their values, and with what is in force where that is another one.
func (t Token) Fields(v *View) []NamedNumber {
	values, inForce := t.values(), t.InForce.values()
	list := make([]NamedNumber, len(values))
	for i, field := range limitFields() {
		list[i] = NamedNumber{Name: field, Word: "limit." + field, Value: values[i]}
		if t.ID != "" && inForce[i] != values[i] && inForce[i] > 0 {
			list[i].Note = v.T("token.in_force", "n", number(inForce[i]))
		}
	}
	return list
}

// HeldBudget says what budget is in force where that is not the token's own, "" otherwise.
func (t Token) HeldBudget(v *View) string {
	if t.ID == "" || t.InForce.Budget == t.Budget || t.InForce.Budget <= 0 {
		return ""
	}
	return v.T("token.in_force", "n", v.Money(t.InForce.Budget))
}

// NamedNumber is a number of a form.
type NamedNumber struct {
	Name, Word string
	Value      int
	// Note is a text below it, "" for none.
	Note string
}

// May tells whether the token may be used for operations of a word.
func (t Token) May(operation string) bool {
	return len(t.Operations) == 0 || slices.Contains(t.Operations, operation)
}

// Until is when the token ends, as its form writes it.
func (t Token) Until() string {
	if t.Expires == nil {
		return ""
	}
	return t.Expires.UTC().Format(time.RFC3339)
}

// List is a list as its form writes it.
func (t Token) List(name string) string {
	if name == "networks" {
		return strings.Join(t.Networks, ", ")
	}
	return strings.Join(t.Models, ", ")
}
