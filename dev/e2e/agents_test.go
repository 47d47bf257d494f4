package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"modelrelay/dev/e2e/stack"
)

const (
	// agentsDir holds the coding agents once "npm ci" ran there.
	agentsDir = nodeDir + "/agents"
	// agentTimeout is how long an agent may take for one task on a busy machine.
	agentTimeout = 5 * time.Minute
)

// What the agents work on: the file says that the lighthouse is red, and it shall be white.
const (
	noteName   = "note.txt"
	noteBefore = "The lighthouse is red.\n"
	noteAfter  = "The lighthouse is white.\n"
	agentsSay  = "Repainted." // one word, which no agent prints in pieces
)

// codingAgent is a program that edits files by calls of its own tools.
type codingAgent struct {
	name    string
	program string // in node_modules
	script  bool   // Node runs it
	// models are what it is run on, the first in its own dialect.
	models []string
	// command returns its arguments and environment.
	command func(agentTask) (args, env []string)
	// home are files in its home directory.
	home func(agentTask) map[string]string
	// read and edit are the calls that read and change the note.
	read, edit func(note string) []map[string]any
	// search is how it searches the web; nil: it has no search, or one that needs no model.
	search *agentSearch
}

// agentSearch is a search of an agent, which the vendor of the model makes.
type agentSearch struct {
	models []string
	// calls are those of the agent's own tools, the last of which makes a call of its own for the search; nil: its model searches within its
	// answer.
	calls func(query string) []map[string]any
}

// agentTask is one run of an agent.
type agentTask struct{ url, model, prompt, home string }

// call is a call of a tool as scripts of the fake upstreams have it.
func call(name string, arguments map[string]any) map[string]any {
	return map[string]any{"name": name, "arguments": arguments}
}

// readsPath makes the call of a tool that takes the path of a file.
func readsPath(name, path string) func(note string) []map[string]any {
	return func(note string) []map[string]any { return []map[string]any{call(name, map[string]any{path: note})} }
}

// replacesAt makes the call of a tool that replaces a text in a file.
func replacesAt(name, path, before, after string) func(note string) []map[string]any {
	return func(note string) []map[string]any {
		return []map[string]any{call(name, map[string]any{
			path: note, before: strings.TrimSpace(noteBefore), after: strings.TrimSpace(noteAfter),
		})}
	}
}

func codingAgents() []codingAgent {
	return []codingAgent{
		{
			// It has a tool of plain text for patches, but only for models whose name it knows, such as gpt-5.5.
			name: "codex", program: "@openai/codex-linux-*/vendor/*/bin/codex", models: []string{"gpt-native", "gpt-5.5", "gemini-3-pro", "glm-5"},
			command: func(t agentTask) ([]string, []string) {
				provider := fmt.Sprintf(`model_providers.relay={name="relay",base_url="%s/v1",env_key="RELAY_KEY",wire_api="responses"}`, t.url)
				return []string{
					"exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", t.model, "-c", "model_provider=relay",
					"-c", provider, "-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false", t.prompt,
				}, []string{"RELAY_KEY=" + stack.Token}
			},
			read: func(string) []map[string]any {
				return []map[string]any{call("exec_command", map[string]any{"cmd": "cat " + noteName})}
			},
			search: &agentSearch{models: []string{"gpt-native", "gpt-5.5"}}, // a model of Gemini's calls functions or searches
			edit: func(string) []map[string]any {
				patch := "*** Begin Patch\n*** Update File: " + noteName + "\n@@\n-" + noteBefore + "+" + noteAfter + "*** End Patch\n"
				return []map[string]any{
					call("apply_patch", map[string]any{"input": patch}), call("exec_command", map[string]any{"cmd": "sed -i s/red/white/ " + noteName}),
				}
			},
		},
		{
			name: "gemini-cli", program: "@google/gemini-cli/bundle/gemini.js", script: true,
			models: []string{"gemini-3-pro", "claude-opus-4-8", "gpt-native", "glm-5"},
			command: func(t agentTask) ([]string, []string) {
				return []string{"-m", t.model, "--approval-mode", "yolo", "--output-format", "stream-json", "--skip-trust", "-p", t.prompt},
					[]string{"GEMINI_API_KEY=" + stack.Token, "GOOGLE_GEMINI_BASE_URL=" + t.url, "GEMINI_SANDBOX=false"}
			},
			home: func(agentTask) map[string]string {
				return map[string]string{".gemini/settings.json": `{"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"enableAutoUpdate": false},
					"telemetry": {"enabled": false}, "privacy": {"usageStatisticsEnabled": false}}`}
			},
			read: readsPath("read_file", "file_path"), edit: func(note string) []map[string]any {
				calls := replacesAt("replace", "file_path", "old_string", "new_string")(note)
				calls[0]["arguments"].(map[string]any)["instruction"] = "Make the lighthouse white."
				return calls
			},
		},
		{
			name: "qwen-code", program: "@qwen-code/qwen-code/cli.js", script: true, models: []string{"glm-5", "claude-opus-4-8", "gemini-3-pro"},
			command: func(t agentTask) ([]string, []string) {
				return []string{"--auth-type", "openai", "--approval-mode", "yolo", "--output-format", "stream-json", "-p", t.prompt},
					[]string{"OPENAI_API_KEY=" + stack.Token, "OPENAI_BASE_URL=" + t.url + "/v1", "OPENAI_MODEL=" + t.model}
			},
			home: func(agentTask) map[string]string {
				return map[string]string{".qwen/settings.json": `{"privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false}}`}
			},
			read: readsPath("read_file", "file_path"), edit: replacesAt("edit", "file_path", "old_string", "new_string"),
		},
		{
			name: "opencode", program: "opencode-linux-*/bin/opencode", models: []string{"glm-5", "claude-opus-4-8", "gemini-3-pro"},
			command: func(t agentTask) ([]string, []string) {
				return []string{"run", "--format", "json", "-m", "relay/" + t.model, t.prompt}, []string{
					"OPENCODE_CONFIG=" + filepath.Join(t.home, "opencode.json"), "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1",
					"OPENCODE_DISABLE_LSP_DOWNLOAD=1",
				}
			},
			home: func(t agentTask) map[string]string {
				return map[string]string{"opencode.json": fmt.Sprintf(`{"provider": {"relay": {"npm": "@ai-sdk/openai-compatible", "name": "relay",
					"options": {"baseURL": "%s/v1", "apiKey": "%s"}, "models": {"%s": {"name": "model", "tool_call": true, "reasoning": true}}}},
					"autoupdate": false, "share": "disabled", "permission": "allow"}`, t.url, stack.Token, t.model)}
			},
			read: readsPath("read", "filePath"), edit: replacesAt("edit", "filePath", "oldString", "newString"),
		},
		{
			name: "pi", program: "@earendil-works/pi-coding-agent/dist/bundle/cli.js", script: true,
			models: []string{"glm-5", "claude-opus-4-8", "gemini-3-pro", "gpt-native"},
			command: func(t agentTask) ([]string, []string) {
				return []string{"--mode", "json", "--no-session", "--provider", "relay", "--model", t.model, t.prompt},
					[]string{"RELAY_KEY=" + stack.Token, "PI_OFFLINE=1", "PI_TELEMETRY=0"}
			},
			home: func(t agentTask) map[string]string {
				return map[string]string{".pi/agent/models.json": fmt.Sprintf(`{"providers": {"relay": {"baseUrl": "%s/v1", "api": "openai-completions",
					"apiKey": "$RELAY_KEY", "models": [{"id": "%s", "reasoning": true}]}}}`, t.url, t.model)}
			},
			read: readsPath("read", "path"), edit: func(note string) []map[string]any {
				edit := map[string]any{"oldText": strings.TrimSpace(noteBefore), "newText": strings.TrimSpace(noteAfter)}
				return []map[string]any{call("edit", map[string]any{"path": note, "edits": []any{edit}})}
			},
		},
		{
			name: "claude-code", program: "@anthropic-ai/claude-code-linux-*/claude",
			models: []string{"claude-opus-4-8", "gpt-native", "gemini-3-pro", "glm-5"},
			command: func(t agentTask) ([]string, []string) {
				return []string{"-p", t.prompt, "--model", t.model, "--dangerously-skip-permissions", "--output-format", "json"}, []string{
					"ANTHROPIC_BASE_URL=" + t.url, "ANTHROPIC_API_KEY=" + stack.Token, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
					"DISABLE_AUTOUPDATER=1",
					"ANTHROPIC_DEFAULT_HAIKU_MODEL=" + t.model, "IS_SANDBOX=1",
				}
			},
			read: readsPath("Read", "file_path"), edit: replacesAt("Edit", "file_path", "old_string", "new_string"),
			search: &agentSearch{
				models: []string{"claude-opus-4-8", "gpt-native", "gemini-3-pro"},
				calls: func(query string) []map[string]any { // it offers the tool once it was asked for
					return []map[string]any{
						call("ToolSearch", map[string]any{"query": "select:WebSearch"}),
						call("WebSearch", map[string]any{"query": query}),
					}
				},
			},
		},
	}
}

// troubles are the answers of an upstream that spoil the first call of an agent; nil for none.
func troubles() map[string]map[string]any {
	begun := []any{map[string]any{"text": "I begin to read."}}
	return map[string]map[string]any{
		"edits":                    nil,
		"edits after an error":     {"parts": begun, "break": map[string]any{"after": 3, "how": "error", "status": 529, "message": "Overloaded"}},
		"edits after a cut":        {"parts": begun, "break": map[string]any{"after": 3, "how": "cut"}},
		"edits after an early end": {"parts": begun, "break": map[string]any{"after": 3, "how": "end"}},
	}
}

// TestAgents lets each coding agent read and edit a file on models of every vendor, also where its first answer ends with an error, is cut
// or ends too early, and lets those that search the web by the model's vendor do so.
func TestAgents(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	node, err := filepath.Abs(installedNode(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(agentsDir + "/node_modules"); err != nil {
		t.Fatalf("run npm ci in %s: %v", agentsDir, err)
	}
	s := stack.SharedRelay(t, unpaced)
	// The troubles of some agents are not to keep others from a model.
	g := s.StartGateway(stack.GatewayOptions{
		Channels: s.Pairs("gpt-native: gpt-5.5", "gpt-5.5: claude-opus-4-8"), Relay: "cooldown: 1ms, cooldown_failures: 32",
	})
	for _, agent := range codingAgents() {
		found, err := filepath.Glob(filepath.Join(agentsDir, "node_modules", agent.program))
		if err != nil || len(found) == 0 {
			t.Errorf("%s is not installed for this machine: %v", agent.name, err)
			continue
		}
		program, err := filepath.Abs(found[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, model := range agent.models {
			for name, trouble := range troubles() {
				t.Run(agent.name+" on "+model+" "+name, func(t *testing.T) {
					t.Parallel()
					agent.edits(t, g, node, program, model, trouble)
				})
			}
		}
		if agent.search == nil {
			continue
		}
		for _, model := range agent.search.models {
			t.Run(agent.name+" on "+model+" searches", func(t *testing.T) {
				t.Parallel()
				agent.searches(t, g, node, program, model)
			})
		}
	}
}

// prepared is a task with its folders and files. The note is in work.
func (a *codingAgent) prepared(t *testing.T, g *stack.Gateway, model, prompt string) (task agentTask, note string) {
	t.Helper()
	dir := t.TempDir()
	task = agentTask{url: g.URL(), model: model, prompt: prompt, home: filepath.Join(dir, "home")}
	note = filepath.Join(dir, "work", noteName)
	files := map[string]string{note: noteBefore}
	if a.home != nil {
		for name, content := range a.home(task) {
			files[filepath.Join(task.home, name)] = content
		}
	}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return task, note
}

// run runs the agent in the folder of the note.
func (a *codingAgent) run(t *testing.T, node, program, note string, task agentTask) (out string, err error) {
	t.Helper()
	args, env := a.command(task)
	name := program
	if a.script {
		name, args = node, append([]string{program}, args...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), agentTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = filepath.Dir(note)
	cmd.Env = append(env, "PATH="+filepath.Dir(node)+":/usr/bin:/bin", "HOME="+task.home, "TMPDIR="+filepath.Dir(task.home), "TERM=dumb",
		"LANG=C.UTF-8")
	// An agent starts processes of its own; they end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = stack.EndTimeout
	printed, err := cmd.CombinedOutput()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	return string(printed), err
}

// searches lets the agent search the web: what its vendor's search found is in its output.
func (a *codingAgent) searches(t *testing.T, g *stack.Gateway, node, program, model string) {
	t.Helper()
	const title, address = "Lights of the harbour", "https://harbour.example/lights"
	query := "lighthouse colours " + strings.ReplaceAll(t.Name(), "/", " ")
	task, note := a.prepared(t, g, model, fmt.Sprintf("Task %s: which lighthouses are white?", t.Name()))
	found := []any{
		map[string]any{"search": map[string]any{"query": query, "pages": []any{map[string]any{"url": address, "title": title}}}},
		map[string]any{"cited": map[string]any{"text": "Three of them are white.", "page": 0}},
	}
	shown := title
	if model == "gpt-native" { // whose searches have no titles
		shown = address
	}
	want := []string{query, "Three of them are white.", agentsSay}
	answers := []any{
		map[string]any{"parts": append(found, map[string]any{"any": a.read(note)})},
		map[string]any{"parts": []any{map[string]any{"text": agentsSay}}},
	}
	var script, inner struct {
		ID string `json:"id"`
	}
	if a.search.calls != nil {
		want, answers = []string{`"title":"` + shown + `","url":"` + address, "Three of them are white."}, nil
		for _, call := range a.search.calls(query) {
			answers = append(answers, map[string]any{"parts": []any{map[string]any{"any": []any{call}}}})
		}
		answers = append(answers, map[string]any{"parts": []any{map[string]any{"text": "It found: {{said}}"}}})
	}
	g.Stack.Control.Do(http.MethodPost, "/scripts", map[string]any{"contains": task.prompt, "plan": true, "answers": answers}, &script)
	if a.search.calls != nil {
		g.Stack.Control.Do(http.MethodPost, "/scripts", map[string]any{"contains": query, "answers": []any{map[string]any{"parts": found}}},
			&inner)
	}
	out, err := a.run(t, node, program, note, task)
	plain := strings.ReplaceAll(out, `\`, "") // the agents' output and Gemini's results of tools are JSON within JSON
	missing := slices.DeleteFunc(want, func(text string) bool { return strings.Contains(plain, text) })
	if err != nil || len(missing) > 0 {
		t.Errorf("got %v, no %q in\n%s", err, missing, out)
	}
	if a.search.calls != nil && taken(t, g.Stack.Control, inner.ID) != 1 {
		t.Error("the upstream was not asked to search")
	}
	if got := taken(t, g.Stack.Control, script.ID); got != len(answers) {
		t.Errorf("the upstream gave %d answers, want %d", got, len(answers))
	}
}

// edits lets the agent edit the note as an upstream's script says, after an answer that is spoiled where there is trouble.
func (a *codingAgent) edits(t *testing.T, g *stack.Gateway, node, program, model string, trouble map[string]any) {
	t.Helper()
	task, note := a.prepared(t, g, model, fmt.Sprintf("Task %s: paint the lighthouse of %s white.", t.Name(), noteName))
	parts := func(parts ...map[string]any) map[string]any { return map[string]any{"parts": parts} }
	answers := []map[string]any{
		parts(map[string]any{"think": "I should read it first."}, map[string]any{"text": "I read the note."},
			map[string]any{"any": a.read(note)}),
		parts(map[string]any{"think": "One word is wrong."}, map[string]any{"any": a.edit(note)}),
		parts(map[string]any{"text": agentsSay}),
	}
	var script struct {
		ID string `json:"id"`
	}
	var spoiled struct {
		ID string `json:"id"`
	}
	if trouble != nil {
		g.Stack.Control.Do(http.MethodPost, "/scripts", map[string]any{"contains": task.prompt, "answers": []any{trouble}}, &spoiled)
	}
	g.Stack.Control.Do(http.MethodPost, "/scripts", map[string]any{"contains": task.prompt, "plan": true, "answers": answers}, &script)

	out, err := a.run(t, node, program, note, task)
	content, readErr := os.ReadFile(note)
	if readErr != nil {
		t.Fatal(readErr)
	}
	if err != nil || string(content) != noteAfter || !strings.Contains(out, agentsSay) {
		t.Errorf("got %v, the note %q and\n%s", err, content, out)
	}
	if trouble != nil && taken(t, g.Stack.Control, spoiled.ID) != 1 {
		t.Error("the agent met no trouble")
	}
	if got := taken(t, g.Stack.Control, script.ID); got < len(answers) || trouble == nil && got > len(answers) {
		t.Errorf("the upstream gave %d answers, want %d", got, len(answers))
	}
}

// taken is how often a script has answered.
func taken(t *testing.T, control *stack.Control, id string) int {
	t.Helper()
	var listed struct {
		Scripts []struct {
			ID    string `json:"id"`
			Taken int    `json:"taken"`
		} `json:"scripts"`
	}
	control.Do(http.MethodGet, "/scripts", json.RawMessage("null"), &listed)
	for _, script := range listed.Scripts {
		if script.ID == id {
			return script.Taken
		}
	}
	t.Fatalf("no script %s", id)
	return 0
}
