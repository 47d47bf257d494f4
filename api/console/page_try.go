package console

import (
	"slices"
	"strings"

	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/providers"
	"modelrelay/providers/health"
	"modelrelay/providers/router"
	"modelrelay/storage/tokens"
)

// consoleToken is the name of the token for operators' tries, unless they choose another. The first use creates it, and its key is not
// stored.
const consoleToken = "console"

// tryModels lists the selectable models: the first ones by name, and the models that forms preselect.
func tryModels(v *View) ([]operator.Model, error) {
	list, err := v.s.o.Operator.ListModels(v.R.Context(), v.actor(), &operator.NamesOf{Limit: operator.MostPage})
	if err == nil && list.HasMore {
		var usual operator.ModelList
		usual, err = v.s.o.Operator.ListModels(v.R.Context(), v.actor(), &operator.NamesOf{Names: []string{usualChat, usualVideo}})
		for _, model := range usual.Data {
			if model.ID > list.Data[len(list.Data)-1].ID {
				list.Data = append(list.Data, model)
			}
		}
	}
	return list.Data, err
}

// answers reports whether, according to the known state, the channel can serve its model now.
func answers(c operator.ModelChannel) bool { return c.State == health.StateClosed || c.State == "" }

// ownTryModel returns what a holder's form needs of a model.
func ownTryModel(model router.Model) operator.Model {
	own := operator.Model{ID: model.ID}
	if model.Video != nil {
		own.Video = new(model.Video.Table())
	}
	return own
}

type tryData struct {
	Kind, As, AsName string
	Models           []operator.Model
	Model            string
	Prompt           string
	Tokens           []operator.Token // the choices of an operator
	Snippets         *program
	Unread           string
	// Pays is another token that pays for an operator's tries, "" for none.
	Pays string
}

// tryKinds are the kinds of tries in the order of their tabs.
func tryKinds() []string { return []string{"chat", "image", "speech", "transcribe", "video"} }

func tryPage() page {
	return page{
		name: "try", path: "/try", roles: []edge.Role{Operator, Holder}, nav: "try", key: "p", scripts: []string{"try.js"},
		show: func(v *View) (any, error) {
			kind := v.Query("kind")
			if !slices.Contains(tryKinds(), kind) {
				kind = "chat"
			}
			data := tryData{Kind: kind, Model: v.Query("model"), Prompt: cut(v.Query("prompt"), 2<<10)}
			if err := data.choose(v); err != nil {
				return nil, err
			}
			data.Models = slices.DeleteFunc(data.Models, func(m operator.Model) bool { return !serves(m, kind) })
			if data.Model == "" {
				data.Model = preferred(data.Models, kind)
			}
			operation := map[string]string{"chat": createChat, "video": createVideo}[kind]
			data.Snippets = programFor(v.s.base(v.R), operation, "MODEL_HERE", "PROMPT_HERE", false)
			return data, nil
		},
	}
}

// choose determines the token of the tries, and reads its models.
func (d *tryData) choose(v *View) error {
	if v.User.Role == Holder {
		d.As, d.AsName = v.User.Owner, v.User.Name
		token, err := v.holder(1)
		d.read(v, token, err)
		return nil
	}
	list, err := v.s.o.Operator.ListTokens(v.R.Context(), v.actor(),
		&operator.TokenQuery{State: "active", PageOf: operator.PageOf{Limit: mostNames}})
	if err != nil {
		return err
	}
	d.As, d.AsName, d.Tokens = consoleToken, consoleToken, list.Data
	for _, token := range list.Data {
		if token.ID == v.Query("as") {
			d.As, d.AsName, d.Pays = token.ID, token.Name, token.ID
		}
	}
	if d.As != consoleToken {
		token, err := v.token(d.As)
		d.read(v, token, err)
		return nil
	}
	d.Models, err = tryModels(v)
	return err
}

// read reads the models that a token can call; err is the error of reading the token. Without a list, any name can be typed.
func (d *tryData) read(v *View, token *tokens.Token, err error) {
	if err != nil {
		d.Unread = message(err)
		return
	}
	models, _, _ := ownModels(v, token, operator.NamesOf{Limit: operator.MostPage}) // only the first page
	for _, model := range models {
		d.Models = append(d.Models, ownTryModel(model))
	}
}

// serves reports whether a model may support a kind, by its table and its name.
func serves(m operator.Model, kind string) bool {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(m.ID), word) })
	}
	image, sound, text := has("image", "dall-e", "imagen"), has("tts", "speech"), has("whisper", "transcribe")
	video := m.Video != nil || has("sora-", "-video", "video-") // videos of a compatible server have no table
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

// The models that forms preselect if they exist.
const (
	usualChat  = "gpt-4o-mini"
	usualVideo = "sora-2"
)

// preferred returns the model that a form of a kind preselects: a well-known one, else the first that supports the kind, preferably with a
// working channel; "" for none.
func preferred(models []operator.Model, kind string) string {
	known, first, works := map[string]string{"chat": usualChat, "video": usualVideo}[kind], "", false
	for _, m := range models {
		if m.ID == known {
			return known
		}
		up := slices.ContainsFunc(m.Channels, answers)
		if (first == "" || !works && up) && serves(m, kind) {
			first, works = m.ID, up
		}
	}
	return first
}

// consoleTokenID returns the id of the token for operators' tries. It creates the token if create is set.
func consoleTokenID(v *View, create bool) (string, error) {
	ctx, by, name := v.R.Context(), v.actor(), operator.TokenName{Token: consoleToken}
	token, err := v.s.o.Operator.Token(ctx, by, &name)
	if err == nil && token.State == "active" {
		return token.ID, nil
	}
	if problem := v.problem(err); err != nil && (problem == nil || !problem.Missing()) {
		return "", err
	}
	if !create || token.State == "disabled" || token.State == "expired" {
		return "", &providers.Fault{Kind: providers.NotFound, Message: v.T("try.console.missing")}
	}
	token, err = v.s.o.Operator.CreateToken(ctx, by, &operator.CreateToken{Body: operator.TokenCreate{Name: consoleToken}})
	if problem := v.problem(err); problem != nil && problem.Changed() { // another process has created it
		token, err = v.s.o.Operator.Token(ctx, by, &name)
	}
	return token.ID, err
}
