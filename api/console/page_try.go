package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"modelrelay/api/console/inprocess"
	"modelrelay/api/console/snippets"
)

// consoleToken is the token that operators try with unless they choose another one. It is made when it is first needed, and
// its key is thrown away.
const consoleToken = "console"

// tryModel is a model that may be tried.
type tryModel struct {
	ID      string          `json:"id"`
	Formats []string        `json:"formats"`
	Video   *tryVideo       `json:"video"`
	Price   json.RawMessage `json:"price"`
	// Channels are those that carry it; a token's own list has none.
	Channels []struct {
		State string `json:"state"`
	} `json:"channels"`
}

// tryVideo is what a video model takes.
type tryVideo struct {
	Seconds []string `json:"seconds"`
	Sizes   []string `json:"sizes"`
}

// works tells whether a channel answers for the model now, as far as that is told.
func (m tryModel) works() bool {
	for _, channel := range m.Channels {
		if channel.State == "closed" || channel.State == "" {
			return true
		}
	}
	return len(m.Channels) == 0
}

// Seconds and Sizes are a video model's, as an attribute holds them.
func (m tryModel) Seconds() string {
	if m.Video == nil {
		return ""
	}
	return strings.Join(m.Video.Seconds, " ")
}

// Sizes are written as Seconds are.
func (m tryModel) Sizes() string {
	if m.Video == nil {
		return ""
	}
	return strings.Join(m.Video.Sizes, " ")
}

// Cost is the model's price as the list has it, "" for none.
func (m tryModel) Cost() string {
	if string(m.Price) == "null" {
		return ""
	}
	return string(m.Price)
}

type tryData struct {
	Kind, As, AsName string
	Models           []tryModel
	Model            string
	Prompt           string
	Tokens           []Token // that an operator may choose
	Snippets         []snippets.Program
	Unread           string
	// Pays is the token of somebody else that pays for an operator's tries, "" for none.
	Pays string
}

// Kinds of what can be tried, in the order of their tabs.
func tryKinds() []string { return []string{"chat", "image", "speech", "transcribe", "video"} }

// tryPage tries models as a token.
func tryPage() page {
	return page{
		name: "try", path: "/try", roles: []Role{Operator, Holder}, nav: "try", key: "p", scripts: []string{"try.js"},
		show: func(v *View) (any, error) {
			kind := v.Query("kind")
			if !slices.Contains(tryKinds(), kind) {
				kind = "chat"
			}
			data := tryData{Kind: kind, Model: v.Query("model"), Prompt: cut(v.Query("prompt"), 2<<10)}
			if err := data.choose(v); err != nil {
				return nil, err
			}
			data.Models = slices.DeleteFunc(data.Models, func(m tryModel) bool { return !m.serves(kind) })
			if data.Model == "" {
				data.Model = preferred(data.Models, kind)
			}
			if kind == snippets.Chat || kind == snippets.Video {
				data.Snippets = snippets.For(v.s.base(v.R), kind, "MODEL_HERE", "PROMPT_HERE")
			}
			return data, nil
		},
	}
}

// choose settles whose token is tried with, and reads its models.
func (d *tryData) choose(v *View) error {
	if v.Who.Role == Holder {
		d.As, d.AsName = v.Who.Owner, v.Who.Name
		return d.read(v, v.Who)
	}
	var list struct {
		Data []Token `json:"data"`
	}
	if err := v.Get("/admin/tokens", url.Values{"state": {"active"}, "limit": {"100"}}, &list); err != nil {
		return err
	}
	d.As, d.AsName, d.Tokens = consoleToken, consoleToken, list.Data
	for _, token := range list.Data {
		if token.ID == v.Query("as") {
			d.As, d.AsName, d.Pays = token.ID, token.Name, token.ID
		}
	}
	if d.As != consoleToken {
		return d.read(v, v.LookingAt(d.As))
	}
	var models struct {
		Data []tryModel `json:"data"`
	}
	err := v.Get("/admin/models", nil, &models)
	if err == nil {
		d.Models = models.Data
		return nil
	}
	for _, token := range list.Data { // what another token may call is a list to choose from as good
		if token.Group == "default" && len(token.Operations) == 0 {
			return d.read(v, v.LookingAt(token.ID))
		}
	}
	return nil
}

func (d *tryData) read(v *View, who Who) error {
	var models struct {
		Data []tryModel `json:"data"`
	}
	if err := v.DoAs(who, http.MethodGet, "/v1/models", nil, &models); err != nil {
		d.Unread = err.Error()
		return nil //nolint:nilerr // any name can be typed, and the page says why there is no list
	}
	d.Models = models.Data
	return nil
}

// serves tells whether a model may be of a kind: by its formats where they are known, else by its table and its name.
func (m tryModel) serves(kind string) bool {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(m.ID), word) })
	}
	image, sound, text := has("image", "dall-e", "imagen"), has("tts", "speech"), has("whisper", "transcribe")
	video := m.Video != nil || has("sora-", "-video", "video-") // a compatible server's videos have no table
	switch kind {
	case "video":
		return video
	case "image":
		return image
	case "speech":
		return sound
	case "transcribe":
		return text
	default:
		return !video && !image && !sound && !text && !has("embed", "moderation", "rerank", "realtime")
	}
}

// preferred is the model that a form of a kind begins with: a well-known one, else the first that
// serves it, one that answers now before others; "" for none.
func preferred(models []tryModel, kind string) string {
	known, first, works := map[string]string{snippets.Chat: "gpt-4o-mini", snippets.Video: "sora-2"}[kind], "", false
	for _, m := range models {
		if m.ID == known {
			return known
		}
		if (first == "" || !works && m.works()) && m.serves(kind) {
			first, works = m.ID, m.works()
		}
	}
	return first
}

// consoleTokenID finds the token that operators try with, and makes it where fresh says so.
func consoleTokenID(v *View, fresh bool) (string, error) {
	var token Token
	err := v.Get("/admin/tokens/"+consoleToken, nil, &token)
	if err == nil && token.State == "active" {
		return token.ID, nil
	}
	if problem := inprocess.AsProblem(err); err != nil && (problem == nil || !problem.Missing()) {
		return "", err
	}
	if !fresh || token.State == "disabled" || token.State == "expired" {
		return "", &inprocess.Problem{Status: http.StatusNotFound, Message: v.T("try.console.missing")}
	}
	err = v.Do(http.MethodPost, "/admin/tokens", map[string]any{"name": consoleToken}, &token)
	if problem := inprocess.AsProblem(err); problem != nil && problem.Changed() { // another process was faster
		err = v.Get("/admin/tokens/"+consoleToken, nil, &token)
	}
	return token.ID, err
}
