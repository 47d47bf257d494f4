package main_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, args string
		code       int
		out, err   string
	}{
		{"nothing", "", 2, "", "expected one of"},
		{"help", "--help", 0, "Usage: gateway <command>", ""},
		{"help of a command", "video create --help", 0, "--idempotency-key", ""},
		{"help as a word", "help", 0, "Usage: gateway <command>", ""},
		{"help of a command as a word", "help video create", 0, "--idempotency-key", ""},
		{"help of no command", "help dance", 2, "", "unexpected argument dance"},
		{
			"no moment of the past", "video list --since yesterday --query", 2, "",
			`"yesterday" is neither a date (2027-01-31), an RFC 3339 time nor a duration such as 24h`,
		},
		{
			"no moment of the future", "token create --name a --expires tomorrow", 2, "",
			`"tomorrow" is neither a date (2027-01-31), an RFC 3339 time nor a duration such as 24h`,
		},
		{"unknown command", "dance", 2, "", "unexpected argument dance"},
		{"unknown flag", "serve --dance", 2, "", "unknown flag --dance"},
		{"flag of the wrong type", "token create --name a --weight x", 2, "", "--weight"},
		{"missing flag", "token create", 2, "", "--name"},
		{"missing argument", "token show", 2, "", "<token>"},
		{"no configuration", "config check --config none.yaml", 2, "", "none.yaml: cannot be read: no such file"},
		{"serve without configuration", "serve --config none.yaml", 2, "", "none.yaml: cannot be read"},
		{"video without token", "video get video_x", 2, "", "a token is required: --token or GATEWAY_TOKEN"},
		{"video with a bad address", "video get video_x --token t --url here", 2, "", "--url requires http://host"},
		{"create without anything", "video create --token t", 2, "", "--prompt or --image is required"},
		{"download before the first", "video download video_x --token t --index=-1", 2, "", "--index: is negative"},
		{"list below zero", "video list --limit=-1", 2, "", "--limit: is negative"},
		{
			"query of a list", "video list --state failed --query", 0,
			"WorkflowType IN ('Video', 'Call') AND ExecutionStatus != 'ContinuedAsNew' AND TaskState = 'failed'\n", "",
		},
		{
			"query for machines", "video list --state failed --query --json", 0,
			`"query": "WorkflowType IN ('Video', 'Call') AND ExecutionStatus != 'ContinuedAsNew' AND TaskState = 'failed'"`, "",
		},
		{"openapi", "openapi", 0, "openapi: 3.1", ""},
		{"openapi as json", "openapi --format json", 0, `"openapi": "3.1`, ""},
		{"openapi as xml", "openapi --format xml", 2, "", "--format"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, code := run(t, nil, strings.Fields(test.args)...)
			if code != test.code || !strings.Contains(stdout, test.out) || !strings.Contains(stderr, test.err) {
				t.Errorf("code %d, want %d\nout %s\nwant %s\nerr %s\nwant %s", code, test.code, stdout, test.out, stderr, test.err)
			}
		})
	}
}

func TestConfigFromEnvironment(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "x.yaml", "listn: 1\n")
	_, stderr, code := run(t, map[string]string{"GATEWAY_CONFIG": path}, "config", "check")
	if code != 2 || !strings.Contains(stderr, path+":1:1: listn: unknown key") {
		t.Errorf("code %d, %s", code, stderr)
	}
	_, stderr, _ = run(t, map[string]string{"GATEWAY_CONFIG": path}, "config", "check", "--config", "other.yaml")
	if !strings.HasPrefix(stderr, "other.yaml: ") {
		t.Errorf("the flag does not come first: %s", stderr)
	}
}

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	const text = `
temporal: {address: 127.0.0.1:1}
admin_key: hidden-admin
redis: {url: "redis://:hidden-redis@127.0.0.1:6379/0"}
archive: {access_key: a, secret_key: hidden-archive}
tokens: [{name: demo, key: hidden-token}]
channels: [{name: main, vendor: openai, base_url: "http://u.test/v1?k=hidden-query", keys: [hidden-key], models: {b: , a: }}]
`
	path := writeFile(t, "gateway.yaml", text)
	for _, args := range [][]string{{"config", "check"}, {"config", "check", "--json"}} {
		stdout, stderr, code := run(t, nil, append(args, "--config", path)...)
		if code != 0 || stderr != "" {
			t.Errorf("code %d, %s", code, stderr)
		}
		for _, want := range []string{"main", "openai", "http://u.test/v1", "demo", "127.0.0.1:8080", "not reachable;"} {
			if !strings.Contains(stdout, want) {
				t.Errorf("%q is not in %s", want, stdout)
			}
		}
		if strings.Contains(stdout, "hidden") {
			t.Errorf("a secret is printed: %s", stdout)
		}
	}
}

// TestConfigCheckTellsWhichTokensWork: a key that is answered 401 is not called active.
func TestConfigCheckTellsWhichTokensWork(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "gateway.yaml", "temporal: {address: 127.0.0.1:1}\ntokens:\n  - {name: works, key: a, expires: 2999-01-01}\n"+
		"  - {name: old, key: b, expires: 2001-01-01}\n  - {name: off, key: c, disabled: true, expires: 2001-01-01}\n")
	stdout, stderr, code := run(t, nil, "config", "check", "--config", path)
	if code != 0 {
		t.Fatalf("code %d, %s", code, stderr)
	}
	states := map[string]string{}
	for line := range strings.Lines(stdout) {
		if cells := strings.Fields(line); len(cells) == 4 {
			states[cells[0]] = cells[3]
		}
	}
	if states["works"] != "active" || states["old"] != "expired" || states["off"] != "disabled" {
		t.Errorf("printed %s", stdout)
	}
}

// TestProductLinksNoServer holds the development stack's weight out of the product.
func TestProductLinksNoServer(t *testing.T) {
	t.Parallel()
	list, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	servers := regexp.MustCompile(`(?m)^(go\.temporal\.io/server|github\.com/(alicebob|rclone|minio/minio)/|modernc\.org|modelrelay/dev).*$`)
	if found := servers.FindAllString(string(list), -1); found != nil {
		t.Errorf("the product links %v", found)
	}
	if !strings.Contains(string(list), "go.temporal.io/sdk/worker") {
		t.Error("the list is not that of the product")
	}
}
