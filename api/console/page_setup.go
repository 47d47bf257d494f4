package console

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
)

// check is one line of the list: what is right, or what is wrong and the command that mends it.
type check struct {
	Name, Word string
	// State is ok, bad, warn, or todo.
	State string
	// Said is the gateway's own word for it; Mend a command.
	Said, Mend string
	Millis     float64
	Link       string
}

// Mark is the check's.
func (c check) Mark() string {
	return cmp.Or(map[string]string{"ok": "done", "bad": "failed", "warn": "hand"}[c.State], "waiting")
}

type setupData struct {
	Steps, Checks []check
	Version       string
	Done          int
	Try           []Snippet
	Model         string
	VideoModel    string
}

// setupPage is where a new gateway begins: from nothing to the first answer.
func setupPage() page {
	return page{
		name: "setup", path: "/setup", roles: staff(), nav: "setup", key: "s", scripts: []string{"try.js"},
		show: func(v *View) (any, error) { return v.setup(), nil },
	}
}

// setup looks at everything. What does not answer is a line of its own.
func (v *View) setup() setupData {
	var list struct {
		Data []tryModel `json:"data"`
	}
	_ = v.Get("/admin/models", nil, &list) // any name can be typed
	data := setupData{Model: preferred(list.Data, snippetChat), VideoModel: preferred(list.Data, snippetVideo)}
	data.Checks, data.Version = v.healthChecks()
	services := check{Word: "setup.services", State: "ok"}
	for _, c := range data.Checks {
		if c.State != "ok" {
			services.State = "bad"
		}
	}
	channels := v.channelStep()
	tokens, used := v.tokenSteps()
	signIn := check{Word: "setup.signin", State: "ok", Said: v.Who.Name}
	data.Steps = []check{services, signIn, channels, tokens, used}
	for _, step := range data.Steps {
		if step.State == "ok" {
			data.Done++
		}
	}
	if v.s.o.URL != nil && v.s.o.URL.Scheme == "http" && !loopback(v.s.o.URL.Host) {
		data.Checks = append(data.Checks, check{Word: "setup.plain", State: "warn", Mend: "console: {url: https://" + v.s.o.URL.Host + "}"})
	}
	data.Try = snippets(v.s.base(v.R), snippetChat, cmp.Or(data.Model, "MODEL"), "Hello")
	return data
}

// healthChecks are those of /readyz.
func (v *View) healthChecks() (list []check, version string) {
	r, err := v.inside(v.R.Context(), v.Who, http.MethodGet, "/readyz", nil)
	if err != nil {
		return nil, ""
	}
	answer := &recorder{header: make(http.Header), most: maxAnswer}
	v.s.o.API.ServeHTTP(answer, r)
	var said struct {
		Checks map[string]struct {
			Status  string  `json:"status"`
			Error   string  `json:"error"`
			Latency float64 `json:"latency_ms"`
		} `json:"checks"`
		Version string `json:"version"`
	}
	if json.Unmarshal(answer.body.Bytes(), &said) != nil {
		return nil, ""
	}
	for name, c := range said.Checks {
		line := check{Name: name, State: "ok", Said: c.Error, Millis: c.Latency}
		if v.s.words.has("check." + name) {
			line.Word = "check." + name
		}
		if c.Status != "ok" {
			line.State, line.Mend = "bad", "gateway config check --connect"
		}
		list = append(list, line)
	}
	slices.SortFunc(list, func(a, b check) int { return cmp.Compare(a.Name, b.Name) })
	return list, said.Version
}

// channelStep tells whether anything can answer.
func (v *View) channelStep() check {
	step := check{Word: "setup.channels", State: "todo"}
	var list struct {
		Data []struct {
			Name  string `json:"name"`
			State string `json:"state"`
		} `json:"data"`
	}
	if err := v.Get("/admin/channels", nil, &list); err != nil {
		step.State, step.Said = "bad", err.Error()
		return step
	}
	working := 0
	for _, channel := range list.Data {
		if channel.State == "closed" || channel.State == "half-open" {
			working++
		}
	}
	switch {
	case len(list.Data) == 0:
		step.Mend = "channels:\n  - name: main\n    vendor: openai\n    base_url: https://api.openai.com/v1\n    keys: [\"${OPENAI_API_KEY}\"]\n    models: {gpt-4o-mini: }"
	case working == 0:
		step.State = "bad"
	default:
		step.State = "ok"
	}
	step.Said = v.T("setup.channels.n", "n", working, "all", len(list.Data))
	return step
}

// tokenSteps tell whether a program could call, and whether one did.
func (v *View) tokenSteps() (made, used check) {
	made, used = check{Word: "setup.token", State: "todo", Link: v.To("tokens", "new")}, check{Word: "setup.used", State: "todo"}
	var list struct {
		Data []Token `json:"data"`
	}
	if err := v.Get("/admin/tokens", url.Values{"state": {"active"}, "limit": {"100"}}, &list); err != nil {
		made.State, made.Said = "bad", err.Error()
		return made, used
	}
	for _, token := range list.Data {
		if token.Name != consoleToken {
			made.State, made.Link = "ok", ""
		}
		if token.LastUsed != nil {
			used.State = "ok"
		}
	}
	return made, used
}
