package main_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	main "modelrelay/cmd/gateway"
)

// printed is what commands print with --json.
type printed struct {
	commands string // with commas between them
	// prints is the operation whose answer they print, or a text. With list they print a list: its data, or several answers.
	prints string
	list   bool
	keys   string // of a text, with spaces between them
	// run is a command line whose output a test compares with the keys, "" for none.
	run string
}

// printedBy returns what each command prints, in the order of the page.
func printedBy() []printed {
	return []printed{
		{
			commands: "token create, token show, token update, token rotate, token revoke", prints: "GET /admin/tokens/{token}",
			run: "token create --name one",
		},
		{commands: "token list", prints: "GET /admin/tokens", list: true, run: "token list"},
		{commands: "token groups", prints: "GET /admin/groups", list: true, run: "token groups"},
		{commands: "task get, task wait, task cancel", prints: "GET /v1/tasks/{task_id}"},
		{commands: "task delete", prints: "the id", keys: "id deleted"},
		{commands: "task list", prints: "GET /admin/tasks", list: true},
		{commands: "task list --query", prints: "a query for the Temporal UI", keys: "query", run: "task list --query"},
		{commands: "task show, video retry-archive", prints: "GET /admin/tasks/{task_id}"},
		{commands: "task counts", prints: "GET /admin/tasks/counts"},
		{commands: "task deliveries", prints: "GET /admin/deliveries", list: true},
		{commands: "task fail, task cancel --operator", prints: "the id and the state", keys: "id state"},
		{commands: "task redeliver", prints: "POST /admin/tasks/{task_id}/redeliver"},
		{commands: "task reindex", prints: "numbers of tasks", keys: "tasks unfinished"},
		{commands: "video create, video get, video wait, video cancel", prints: "GET /v1/videos/{task_id}"},
		{commands: "task result, video download, video content", prints: "the file", keys: "file size sha256"},
		{commands: "usage", prints: "GET /admin/usage", list: true, run: "usage"},
		{commands: "usage --unsettled", prints: "GET /admin/usage/unsettled", list: true, run: "usage --unsettled"},
		{commands: "usage --charge, usage --refund", prints: "a number and a sum", keys: "charged refunded amount"},
		{commands: "calls", prints: "GET /admin/calls", list: true, run: "calls"},
		{commands: "calls ID", prints: "GET /admin/calls/{id}"},
		{commands: "channels list", prints: "GET /admin/channels", list: true, run: "channels list"},
		{
			commands: "channels pause, channels resume, channels wake", prints: "the channel and its state", keys: "channel done",
			run: "channels pause main",
		},
		{commands: "channels test", prints: "POST /admin/channels/{name}/test", list: true, run: "channels test"},
		{commands: "models", prints: "GET /admin/models", run: "models"},
		{commands: "prices draft", prints: "POST /admin/prices/draft", run: "prices draft LIST"},
		{commands: "traffic", prints: "GET /admin/traffic", run: "traffic"},
		{commands: "audit", prints: "GET /admin/audit", list: true, run: "audit"},
		{commands: "console", prints: "a link", keys: "url operator token expires", run: "console"},
		{commands: "config check", prints: "the configuration", keys: "file listen temporal channels tokens warnings", run: "config check"},
		{commands: "config check --connect", prints: "GET /admin/setup", list: true},
		{commands: "health", prints: "the answer of /healthz, or of /readyz with --for"},
		{commands: "version", prints: "the build", keys: "version commit commit_date go_version", run: "version"},
		{commands: "openapi", prints: "the OpenAPI document", keys: "openapi info servers tags paths components security", run: "openapi"},
	}
}

// answers are the schemas of the answers in the OpenAPI document.
type answers struct {
	Paths map[string]map[string]struct {
		Responses map[string]struct {
			Content map[string]struct{ Schema schema }
		}
	}
	Components struct{ Schemas map[string]schema }
}

type schema struct {
	Ref        string `json:"$ref"`
	Properties map[string]schema
	Items      *schema
}

func readAnswers(t *testing.T) *answers {
	t.Helper()
	document, stderr, code := run(t, nil, "openapi", "--format", "json")
	if code != 0 {
		t.Fatal(stderr)
	}
	a := decode[answers](t, document)
	return &a
}

// keys returns the properties of an operation's JSON answer, or of the entries of its data; none for what is not an operation.
func (a *answers) keys(operation string, list bool) []string {
	method, path, _ := strings.Cut(operation, " ")
	responses := a.Paths[path][strings.ToLower(method)].Responses
	response, ok := responses["200"]
	if !ok {
		response = responses["201"]
	}
	of := a.resolve(response.Content["application/json"].Schema)
	if list && of.Properties["data"].Items != nil {
		of = a.resolve(*of.Properties["data"].Items)
	}
	return slices.Sorted(maps.Keys(of.Properties))
}

func (a *answers) resolve(s schema) schema {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return a.Components.Schemas[name]
	}
	return s
}

// all returns the keys of the command's output.
func (p printed) all(a *answers) []string {
	if p.keys != "" {
		return strings.Fields(p.keys)
	}
	return a.keys(p.prints, p.list)
}

// jsonReference returns the page of the commands' JSON: its text as it is, with the table of the code.
func jsonReference(t *testing.T) string {
	t.Helper()
	const head = "| command | prints | keys |\n|---|---|---|\n"
	page, err := os.ReadFile(filepath.Join("docs", "reference", "json-output.md"))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), head)
	_, after, ends := strings.Cut(rest, "\n\n")
	if !found || !ends {
		t.Fatalf("reference/json-output.md has no table %q", head)
	}
	document := readAnswers(t)
	var rows strings.Builder
	for _, p := range printedBy() {
		prints := p.prints
		if p.keys == "" && p.commands != "health" {
			prints = "`" + prints + "`"
		}
		if p.list {
			prints += ", as a list"
		}
		keys := p.all(document)
		for i, key := range keys {
			keys[i] = "`" + key + "`"
		}
		fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", strings.ReplaceAll(p.commands, ", ", "`, `"), prints, strings.Join(keys, ", "))
	}
	return before + head + rows.String() + "\n" + after
}

// TestPrintedByCommands: the page has each command, and those that need only Redis print the keys that it lists.
func TestPrintedByCommands(t *testing.T) {
	t.Parallel()
	parser, err := main.CommandLine()
	if err != nil {
		t.Fatal(err)
	}
	path, _ := redisConfig(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	list := writeFile(t, "api.json", `{"openai":{"id":"openai","models":{"gpt-4o":{"id":"gpt-4o","cost":{"input":2.5,"output":10}}}}}`)
	config := writeFile(t, "gateway.yaml", string(text)+"admin_key: an-admin-key-of-32-characters-ab\n"+
		"console: {enabled: true, url: \"https://gateway.example\"}\n"+
		"channels: [{name: main, vendor: openai, base_url: \"http://127.0.0.1:1/v1\", keys: [k], models: {gpt-4o: }}]\n")
	document := readAnswers(t)
	listed := []string{"serve", "worker", "docs"} // they print no JSON
	for _, p := range printedBy() {
		listed = append(listed, strings.Split(p.commands, ", ")...)
		keys := p.all(document)
		if len(keys) == 0 && p.commands != "health" {
			t.Errorf("%s: no operation %s", p.commands, p.prints)
		}
		if p.run == "" {
			continue
		}
		args := append(strings.Fields(strings.ReplaceAll(p.run, "LIST", list)), "--json")
		if p.run != "version" && p.run != "openapi" {
			args = append(args, "--config", config)
		}
		stdout, stderr, _ := run(t, nil, args...)
		one := json.RawMessage(stdout)
		var entries []json.RawMessage
		if json.Unmarshal(one, &entries) == nil {
			if len(entries) == 0 {
				continue
			}
			one = entries[0]
		} else if p.list {
			t.Errorf("gateway %s prints no list: %s%s", p.run, stdout, stderr)
		}
		for key := range decode[map[string]json.RawMessage](t, string(one)) {
			if !slices.Contains(keys, key) {
				t.Errorf("gateway %s prints %s, which the page does not have", p.run, key)
			}
		}
	}
	for _, command := range parser.Model.Leaves(true) {
		if name := commandPath(command); !slices.Contains(listed, name) {
			t.Errorf("the page does not have gateway %s", name)
		}
	}
}
