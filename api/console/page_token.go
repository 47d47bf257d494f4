package console

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/edge"
	"modelrelay/api/logs"
	"modelrelay/api/operator"
	"modelrelay/providers"
	"modelrelay/storage/sessions"
	"modelrelay/storage/slots"
	"modelrelay/storage/tokens"
)

// tokenData is one token, or the form of a new one.
type tokenData struct {
	Token formToken
	New   bool
	// Secret has the secrets that only this answer shows.
	Secret *shownOnce
	// Now are the models that the token can call. Unread is why they are unknown.
	Now    []string
	Unread string
	// Groups are the options of the form; nil: they could not be read. Unknown is the token's group if it is missing among them.
	Groups  []operator.Group
	Unknown string
	// Link is a sign-in link that only this answer shows.
	Link string
	// Recent are the usage, and the last calls, tasks and changes; nil for a new token.
	Recent []recent
}

type formToken struct{ operator.Token }

// shownOnce is a new key or webhook secret, with the values that a client needs in addition.
type shownOnce struct {
	Key, WebhookSecret string
	Base               string
	Snippets           *program
}

// All returns the text of "copy all": the environment variables of a program.
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

func newTokenPage() page {
	return page{
		name: "token", path: "/tokens/new", roles: []edge.Role{Operator}, under: "tokens",
		show: func(v *View) (any, error) {
			data := tokenData{New: true, Token: formToken{operator.Token{
				Group: operator.DefaultGroup, LimitChange: tokens.AllLimits(tokens.Limits{}), Weight: 1, Lane: slots.LaneNormal,
			}}}
			if like := v.Query("like"); like != "" {
				var err error
				if data.Token.Token, err = v.s.o.Operator.Token(v.R.Context(), v.actor(), &operator.TokenName{Token: like}); err != nil {
					return nil, err
				}
				data.Token.Name, data.Token.ID, data.Token.Seeded = "", "", false
			}
			data.readGroups(v)
			return data, nil
		},
		acts: map[string]act{"create": {roles: []edge.Role{Operator}, do: createToken}},
	}
}

func tokenPage() page {
	operators := []edge.Role{Operator}
	update := func(done string, read func(v *View) (operator.TokenUpdate, error)) act {
		return act{roles: operators, do: func(v *View) (string, any, error) {
			change, err := read(v)
			if err == nil {
				_, err = v.s.o.Operator.UpdateToken(v.R.Context(), v.actor(), &operator.UpdateToken{TokenName: tokenName(v), Body: change})
			}
			return pathOf("tokens", v.R.PathValue("token")) + "?done=" + done, nil, err
		}}
	}
	set := func(done string, disabled bool) act {
		return update(done, func(*View) (u operator.TokenUpdate, err error) { u.Disabled = &disabled; return u, nil })
	}
	return page{
		name: "token", path: "/tokens/{token}", roles: staff(), under: "tokens",
		show: func(v *View) (any, error) { return showToken(v) },
		acts: map[string]act{
			"change": update("token-changed", func(v *View) (u operator.TokenUpdate, err error) {
				u.TokenChange, err = readToken(v)
				if version, bad := strconv.ParseInt(v.Form.Value("version"), 10, 64); bad == nil {
					u.Version = &version
				}
				return u, err
			}),
			"disable": set("token-disabled", true), "enable": set("token-enabled", false),
			"rotate": {roles: operators, do: func(v *View) (string, any, error) {
				name := tokenName(v)
				token, err := v.s.o.Operator.RotateToken(v.R.Context(), v.actor(), &name)
				return showSecret(v, token, err)
			}},
			"secret": {roles: operators, do: func(v *View) (string, any, error) {
				token, err := v.s.o.Operator.RotateWebhookSecret(v.R.Context(), v.actor(), &operator.RotateSecret{TokenName: tokenName(v)})
				return showSecret(v, token, err)
			}},
			"revoke": {roles: operators, do: revokeToken}, "link": {roles: operators, do: tokenLink},
		},
	}
}

func tokenName(v *View) operator.TokenName { return operator.TokenName{Token: v.R.PathValue("token")} }

func showToken(v *View) (data tokenData, err error) {
	name := tokenName(v)
	if data.Token.Token, err = v.s.o.Operator.Token(v.R.Context(), v.actor(), &name); err != nil {
		return data, err
	}
	if data.Token.State == "active" {
		data.Now, data.Unread = modelsOf(v, data.Token.ID)
	}
	data.readGroups(v)
	for _, read := range []func(*View, operator.Token) (recent, error){recentUsage, lastCallsOf, recentTasks, recentAudit} {
		part, err := read(v, data.Token.Token)
		if err != nil {
			return data, err
		}
		data.Recent = append(data.Recent, part)
	}
	return data, nil
}

// lastCallsOf returns the calls of a token around its last use. It scans the log back to an hour before that.
func lastCallsOf(v *View, token operator.Token) (recent, error) {
	query := logs.Query{}
	query.Token = token.ID
	if token.LastUsed == nil {
		return recent{Word: "token.calls", Table: callsTable(v, nil), Link: v.List("calls", "token", token.ID)}, nil
	}
	query.Since = token.LastUsed.Add(-time.Hour)
	return recentCalls(v, "token.calls", query)
}

// modelsOf returns the models that a token can call. unread is why they are unknown.
func modelsOf(v *View, id string) (names []string, unread string) {
	token, err := v.token(id)
	if err != nil {
		return nil, message(err)
	}
	return slices.Sorted(slices.Values(v.s.o.Account.ModelNames(token))), ""
}

// createToken creates a token. Only its answer has the key.
func createToken(v *View) (string, any, error) {
	change, err := readToken(v)
	if err != nil {
		return "", nil, err
	}
	if *change.WebhookURL != "" {
		change.WebhookSecret = new(operator.NewSecret)
	}
	token, err := v.s.o.Operator.CreateToken(v.R.Context(), v.actor(), &operator.CreateToken{
		Body: operator.TokenCreate{Name: v.Form.Value("name"), TokenChange: change},
	})
	return showSecret(v, token, err)
}

// showSecret shows the new secrets of a token in one place, and not again; err is the error of creating them.
func showSecret(v *View, token operator.Token, err error) (string, any, error) {
	if err != nil {
		return "", nil, err
	}
	base := v.s.base(v.R)
	data := tokenData{Secret: &shownOnce{Key: token.Key, WebhookSecret: token.WebhookSecret, Base: base}}
	token.Key, token.WebhookSecret = "", ""
	data.Token = formToken{token}
	data.Now, data.Unread = modelsOf(v, token.ID)
	if data.Secret.Key != "" {
		data.Secret.Snippets = programFor(base, createChat, chatModel(data.Now), "Hello", false)
	}
	return "", data, nil
}

// revokeToken ends a token permanently, after its name was typed.
func revokeToken(v *View) (string, any, error) {
	name := tokenName(v)
	token, err := v.s.o.Operator.Token(v.R.Context(), v.actor(), &name)
	if err == nil && v.Form.Value("typed") != token.Name {
		err = invalid("", v.T("token.revoke.typed", "name", token.Name))
	}
	if err == nil {
		_, err = v.s.o.Operator.RevokeToken(v.R.Context(), v.actor(), &operator.TokenName{Token: token.ID})
	}
	return Root + "/tokens?done=token-revoked", nil, err
}

// tokenLink creates a link with which the token's holder signs in.
func tokenLink(v *View) (string, any, error) {
	data, err := showToken(v)
	if err == nil && data.Token.State != "active" {
		err = &providers.Fault{Kind: providers.Conflict, Message: v.T("token.link.state")}
	}
	if err != nil {
		return "", nil, err
	}
	code, err := v.s.o.Sessions.Offer(v.R.Context(), sessions.Link{Kind: TokenKind, Owner: data.Token.ID}, linkTTL)
	if err != nil {
		return "", nil, err
	}
	v.note(v.User, linkWord, data.Token.ID, "")
	data.Link = v.s.base(v.R) + Root + "/enter/" + code
	return "", data, nil
}

// readToken parses the form of a token. It refuses only invalid numbers; the operator service checks the rest.
func readToken(v *View) (change operator.TokenChange, err error) {
	f := v.Form
	operations := f.Values("operations")
	if len(operations) == len(tokens.Operations()) { // all operations are the same as no limit
		operations = nil
	}
	if operations == nil {
		operations = []string{}
	}
	change.Group, change.Lane, change.WebhookURL, change.Expires = new(f.Value("group")), new(f.Value("lane")), new(f.Value("webhook_url")),
		new(f.Value("expires"))
	change.Models, change.Networks, change.Operations = new(splitList(f.Value("models"))), new(splitList(f.Value("networks"))), &operations
	whole := func(name, standard string) int {
		n, bad := strconv.Atoi(cmp.Or(f.Value(name), standard))
		if bad != nil && err == nil {
			err = invalid(name, v.T("token.number"))
		}
		return n
	}
	for _, limit := range tokens.ListLimits(tokens.Limits{}) {
		tokens.SetLimit(&change.LimitChange, limit.Key, whole(limit.Key, "0"))
	}
	change.Weight = new(whole("weight", "1"))
	budget, bad := strconv.ParseFloat(cmp.Or(f.Value("budget"), "0"), 64)
	if bad != nil && err == nil {
		err = invalid("budget", v.T("token.number"))
	}
	change.Budget = &budget
	return change, err
}

func splitList(text string) []string {
	list := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' || r == '\t' || r == '\uff0c' })
	if list == nil {
		return []string{}
	}
	return list
}

// NamedNumber is a number field of a form.
type NamedNumber struct {
	Name  string
	Value int
	// Note is a text below the field, "" for none.
	Note string
}

// Fields are the limits of the form with their values, and with the value in force if it differs.
func (t formToken) Fields(v *View) []NamedNumber {
	own, inForce := tokens.ListLimits(t.All()), tokens.ListLimits(t.InForce.All())
	list := make([]NamedNumber, len(own))
	for i, limit := range own {
		list[i] = NamedNumber{Name: limit.Key, Value: limit.Value}
		if n := inForce[i].Value; t.ID != "" && n != limit.Value && n > 0 {
			list[i].Note = v.T("token.in_force", "n", number(n))
		}
	}
	return list
}

// HeldBudget returns a note with the budget in force if it differs from the token's own, else "".
func (t formToken) HeldBudget(v *View) string {
	if t.ID == "" || t.InForce.Budget == t.Budget || t.InForce.Budget <= 0 {
		return ""
	}
	return v.T("token.in_force", "n", v.Money(t.InForce.Budget))
}

// Permits reports whether the token may be used for the operation.
func (t formToken) Permits(operation string) bool {
	return len(t.Operations) == 0 || slices.Contains(t.Operations, operation)
}

// Until returns the expiry in the form's format.
func (t formToken) Until() string {
	if t.Expires == nil {
		return ""
	}
	return t.Expires.UTC().Format(time.RFC3339)
}

// readGroups reads the configured groups. If they cannot be read, the operator can type a name.
func (d *tokenData) readGroups(v *View) {
	list, err := v.s.o.Operator.ListGroups(v.R.Context(), v.actor(), nil)
	if err != nil {
		return
	}
	d.Groups = list.Data
	if !slices.ContainsFunc(d.Groups, func(g operator.Group) bool { return g.Name == d.Token.Group }) {
		d.Unknown = d.Token.Group
	}
}

// Limits lists limits in one line, "" for none.
func (v *View) Limits(l operator.Limits) string {
	var parts []string
	for _, limit := range tokens.ListLimits(l.All()) {
		if limit.Value > 0 {
			parts = append(parts, v.T("limit."+limit.Key)+" "+number(limit.Value))
		}
	}
	if l.Budget > 0 {
		parts = append(parts, v.T("token.budget")+" "+v.Money(l.Budget))
	}
	return strings.Join(parts, " · ")
}
