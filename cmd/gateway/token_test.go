package main_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	main "modelrelay/cmd/gateway"
	"modelrelay/providers/secret"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/tokens"
)

// redisConfig is a file that names a Redis, and a client of that Redis.
func redisConfig(t *testing.T) (path string, store *tokens.Store) {
	t.Helper()
	server, _ := storagetest.Miniredis(t)
	url := "redis://" + server.Addr()
	store = tokens.New(storagetest.Client(t, url), nil)
	t.Cleanup(store.Close)
	return writeFile(t, "gateway.yaml", "redis: {url: \""+url+"\"}\n"), store
}

// TestLimitFlags: each limit of a token is a flag of the commands that make and change tokens.
func TestLimitFlags(t *testing.T) {
	t.Parallel()
	parser, err := main.CommandLine()
	if err != nil {
		t.Fatal(err)
	}
	flags := make(map[string]string)
	for _, command := range parser.Model.Leaves(true) {
		for _, flag := range command.Flags {
			flags[commandPath(command)+" --"+flag.Name] = flag.Help
		}
	}
	for _, limit := range tokens.ListLimits(tokens.Limits{}) {
		for _, command := range []string{"token create", "token update"} {
			if flag := command + " --" + strings.ReplaceAll(limit.Key, "_", "-"); flags[flag] == "" {
				t.Errorf("there is no %s with a help text", flag)
			}
		}
	}
}

type printedToken struct {
	tokens.Token

	Key              string      `json:"key"`
	NewWebhookSecret secret.Text `json:"webhook_secret"`
}

func TestTokenLife(t *testing.T) {
	t.Parallel()
	path, store := redisConfig(t)
	token := func(args ...string) (string, string, int) {
		t.Helper()
		return run(t, nil, append(append([]string{"token"}, args...), "--config", path)...)
	}
	stdout, stderr, code := token("create", "--name", "app", "--group", "g", "--models", "gpt-*", "--models", "sora-2",
		"--requests-per-minute", "60",
		"--budget", "2.5", "--expires", "720h", "--networks", "10.1.2.3,10.0.0.0/8", "--webhook-url", "https://h.test/x", "--webhook-secret",
		"whsec_aGlkZGVuIGhpZGRlbiBoaWRkZW4gaGlk", "--json")
	if code != 0 {
		t.Fatalf("code %d, %s", code, stderr)
	}
	made := decode[printedToken](t, stdout)
	if len(made.Key) != 51 || !strings.HasPrefix(made.Key, "sk-") || strings.Contains(stdout, "whsec_") {
		t.Errorf("printed %s", stdout)
	}
	stored, err := store.Authenticate(t.Context(), made.Key)
	if err != nil {
		t.Fatal(err)
	}
	left := time.Until(stored.Expires)
	if stored.Group != "g" || len(stored.Models) != 2 || stored.RequestsPerMinute != 60 || stored.Budget != 2.5 || stored.Weight != 1 ||
		stored.Lane != "normal" || strings.Join(stored.Networks, " ") != "10.1.2.3/32 10.0.0.0/8" || left < 719*time.Hour ||
		left > 720*time.Hour ||
		stored.WebhookSecret != "whsec_aGlkZGVuIGhpZGRlbiBoaWRkZW4gaGlk" {
		t.Errorf("stored %+v", stored)
	}

	if _, stderr, code := token("create", "--name", "app"); code != 1 || !strings.Contains(stderr, `there is a token "app" already`) {
		t.Errorf("second create: %d %s", code, stderr)
	}
	stdout, _, code = token("list")
	if code != 0 || !strings.HasPrefix(stdout, "NAME") || !strings.Contains(stdout, "gpt-*, sora-2") || strings.Contains(stdout, made.Key) {
		t.Errorf("list: %d\n%s", code, stdout)
	}
	stdout, _, code = token("show", "app")
	if code != 0 || !strings.Contains(stdout, made.ID) || !strings.Contains(stdout, "state                active") ||
		strings.Contains(stdout, made.Key) {
		t.Errorf("show: %d\n%s", code, stdout)
	}

	stdout, _, code = token("rotate", made.ID, "--json")
	rotated := decode[printedToken](t, stdout)
	if code != 0 || rotated.ID != made.ID || rotated.Key == made.Key {
		t.Errorf("rotate: %d\n%s", code, stdout)
	}
	if _, err := store.Authenticate(t.Context(), rotated.Key); err != nil {
		t.Errorf("the new key: %v", err)
	}

	if stdout, _, code = token("revoke", "app"); code != 0 || !strings.Contains(stdout, "revoked app") {
		t.Errorf("revoke: %d\n%s", code, stdout)
	}
	if stdout, _, _ = token("show", made.ID); !strings.Contains(stdout, "state                revoked") {
		t.Errorf("show after revoke:\n%s", stdout)
	}
	if _, stderr, code = token("rotate", made.ID); code != 1 || !strings.Contains(stderr, "revoked") {
		t.Errorf("rotate after revoke: %d %s", code, stderr)
	}
	for _, command := range []string{"show", "revoke", "rotate"} {
		if _, stderr, code := token(command, "nobody"); code != 1 || !strings.Contains(stderr, `there is no token "nobody"`) {
			t.Errorf("%s nobody: %d %s", command, code, stderr)
		}
	}
}

// TestTokenRevokeOfTheFile: who revokes a token of the file learns that the file still has it.
func TestTokenRevokeOfTheFile(t *testing.T) {
	t.Parallel()
	path, store := redisConfig(t)
	if err := store.Seed(t.Context(), []tokens.Seed{{Token: tokens.Token{Name: "file", Lane: "normal"}, Key: "sk-file"}}); err != nil {
		t.Fatal(err)
	}
	for name, hint := range map[string]bool{"file": true, "app": false} {
		if _, stderr, code := run(t, nil, "token", "create", "--name", name, "--config", path); !hint && code != 0 { // that of the file is there
			t.Fatal(stderr)
		}
		stdout, stderr, code := run(t, nil, "token", "revoke", name, "--config", path)
		if code != 0 || !strings.Contains(stdout, "revoked "+name) || strings.Contains(stderr, "configuration file") != hint {
			t.Errorf("%s: %d\n%s\n%s", name, code, stdout, stderr)
		}
	}
}

func TestTokenCreatePrintsTheKeyOnce(t *testing.T) {
	t.Parallel()
	path, _ := redisConfig(t)
	stdout, stderr, code := run(t, nil, "token", "create", "--name", "a", "--config", path)
	if code != 0 || strings.Count(stdout, "sk-") != 2 || !strings.Contains(stderr, "shown only now") { // the hint and the key
		t.Errorf("code %d\n%s\n%s", code, stdout, stderr)
	}
	if stdout, _, _ := run(t, nil, "token", "list", "--json", "--config", path); len(decode[[]tokens.Token](t, stdout)) != 1 {
		t.Errorf("list: %s", stdout)
	}
}

// TestTokenWebhookSecret: a secret that the gateway makes is printed once, and rotates without the key.
func TestTokenWebhookSecret(t *testing.T) {
	t.Parallel()
	path, store := redisConfig(t)
	token := func(args ...string) (string, string, int) {
		t.Helper()
		return run(t, nil, append(append([]string{"token"}, args...), "--config", path)...)
	}
	stdout, stderr, code := token("create", "--name", "app", "--webhook-url", "https://h.test/x", "--webhook-secret", "new", "--json")
	if code != 0 {
		t.Fatalf("create: %d %s", code, stderr)
	}
	made := decode[printedToken](t, stdout)
	signed := func(want ...secret.Text) {
		t.Helper()
		got, err := store.Webhook(t.Context(), made.ID)
		if err != nil || got.URL != "https://h.test/x" || !slices.Equal(got.Secrets, want) {
			t.Errorf("%d secrets sign, %v; want %d", len(got.Secrets), err, len(want))
		}
	}
	signed(made.NewWebhookSecret)

	stdout, _, code = token("rotate", "app", "--webhook-secret", "--json")
	rotated := decode[printedToken](t, stdout)
	if code != 0 || rotated.Key != "" || rotated.NewWebhookSecret == made.NewWebhookSecret || strings.Count(stdout, "whsec_") != 1 {
		t.Errorf("rotate: %d\n%s", code, stdout)
	}
	signed(rotated.NewWebhookSecret, made.NewWebhookSecret)
	if _, err := store.Authenticate(t.Context(), made.Key); err != nil {
		t.Errorf("the key after the secret's rotation: %v", err)
	}
	if stdout, _, _ := token("show", "app"); !strings.Contains(stdout, "one before until") || strings.Contains(stdout, "whsec_") {
		t.Errorf("show:\n%s", stdout)
	}
	stdout, stderr, code = token("rotate", "app", "--webhook-secret", "--overlap", "0s")
	if code != 0 || strings.Count(stdout, "whsec_") != 1 || !strings.Contains(stderr, "webhook secret: shown only now") {
		t.Errorf("rotate: %d\n%s%s", code, stdout, stderr)
	}
	if got, err := store.Webhook(t.Context(), made.ID); err != nil || len(got.Secrets) != 2 ||
		!strings.Contains(stdout, got.Secrets[0].Reveal()) {
		t.Errorf("%d secrets sign, %v; want the new one and the first", len(got.Secrets), err)
	}
	if _, stderr, code := token("rotate", "app", "--webhook-secret", "--overlap=-1s"); code != 2 ||
		!strings.Contains(stderr, "--overlap: is negative") {
		t.Errorf("negative overlap: %d %s", code, stderr)
	}
	if stdout, _, _ := token("rotate", "app", "--json"); strings.Contains(stdout, "whsec_") || strings.Contains(stdout, "webhook_secret\":") {
		t.Errorf("a rotation of the key prints\n%s", stdout)
	}
}

func TestTokenRefusals(t *testing.T) {
	t.Parallel()
	path, _ := redisConfig(t)
	for _, test := range []struct{ flag, value, want string }{
		{"--expires", "yesterday", "--expires: \"yesterday\" is neither"},
		{"--expires", "2001-01-01", "--expires: is in the past"},
		{"--expires", "-1h", "--expires: is in the past"},
		{"--concurrency", "-1", "--concurrency: is negative"},
		{"--max-sockets", "-2", "--max-sockets: is negative; 0 means 100, -1 no limit"},
		{"--networks", "home", "--networks[0]: \"home\" is neither"},
		{"--webhook-url", "http://h.test", "--webhook-secret: is required with webhook_url"},
		{"--webhook-url", "http://127.0.0.1/", "--webhook-url: leads to a private"},
		{"--webhook-url", "https://u:p@h.test/", "--webhook-url: must not contain a user"},
		{"--webhook-secret", "hush", "--webhook-secret: must be whsec_"},
		{"--group", " ", "--group: is missing"},
		{"--budget", "-2", "--budget: is negative"},
		{"--budget", "1e-12", "--budget: is below one billionth"},
		{"--budget", "nan", "unsupported value: NaN"},
	} {
		_, stderr, code := run(t, nil, "token", "create", "--name", "a", test.flag+"="+test.value, "--config", path)
		if code != 2 || !strings.Contains(stderr, test.want) {
			t.Errorf("%s %s: %d %s", test.flag, test.value, code, stderr)
		}
	}
	if stdout, _, code := run(t, nil, "token", "list", "--json", "--config", path); code != 0 || strings.TrimSpace(stdout) != "[]" {
		t.Errorf("list: %d %s", code, stdout)
	}
}

func TestTokensWithoutRedis(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "gateway.yaml", "redis: {url: \"redis://:hidden@127.0.0.1:1/0\"}\n")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p := newProgram("token", "list", "--config", path)
	if code := p.do(ctx); code != 1 || !strings.Contains(p.err.String(), "unavailable") ||
		strings.Count(p.err.String(), "list tokens: ") != 1 || strings.Contains(p.err.String(), "hidden") {
		t.Errorf("code %d, %s", code, p.err)
	}
}

// TestTokenUpdate: what a flag names changes, the rest stays; an empty value takes a permission's bound away.
func TestTokenUpdate(t *testing.T) {
	t.Parallel()
	path, store := redisConfig(t)
	token := func(args ...string) (string, string, int) {
		t.Helper()
		return run(t, nil, append(append([]string{"token"}, args...), "--config", path)...)
	}
	stdout, stderr, code := token("create", "--name", "app", "--models", "gpt-*", "--requests-per-minute", "60", "--disabled", "--json")
	if code != 0 {
		t.Fatalf("create: %d %s", code, stderr)
	}
	made := decode[printedToken](t, stdout)
	stdout, stderr, code = token("update", "app", "--models", "sora-*, gpt-4o", "--networks", "10.1.2.3", "--operations", "video,relay",
		"--webhook-url", "https://h.test/new", "--webhook-secret", "new", "--expires", "24h", "--disabled=false", "--max-tasks", "3", "--json")
	if code != 0 {
		t.Fatalf("update: %d %s", code, stderr)
	}
	changed := decode[printedToken](t, stdout)
	if changed.Key != "" || changed.NewWebhookSecret == "" || strings.Contains(stdout, made.Key) {
		t.Errorf("printed %s", stdout)
	}
	got, err := store.Authenticate(t.Context(), made.Key)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Models, []string{"sora-*", "gpt-4o"}) || !slices.Equal(got.Networks, []string{"10.1.2.3/32"}) ||
		!slices.Equal(got.Operations, []string{"video", "relay"}) || got.WebhookURL != "https://h.test/new" ||
		got.WebhookSecret != changed.NewWebhookSecret ||
		got.RequestsPerMinute != 60 || got.MaxTasks != 3 || got.Disabled || time.Until(got.Expires) < 23*time.Hour {
		t.Errorf("stored %+v", got)
	}
	if _, stderr, code := token("update", "app", "--models", "", "--networks=", "--expires", "", "--requests-per-minute", "0"); code != 0 {
		t.Fatalf("update: %d %s", code, stderr)
	}
	shown, _, _ := token("show", "app")
	if stdout, stderr, code := token("update", "app", "--max-sockets=-1"); code != 0 || !strings.Contains(shown, "100 (default)") ||
		!strings.Contains(stdout, "no limit") {
		t.Errorf("update of a limit that has a default: %d %s%s; before:\n%s", code, stdout, stderr, shown)
	}
	if _, stderr, _ := token("update", "app", "--max-tasks", "3"); stderr != "" {
		t.Errorf("an update that shows nothing for once says: %s", stderr)
	}
	if got, err := store.Find(t.Context(), made.ID); err != nil || len(got.Models)+len(got.Networks)+got.RequestsPerMinute != 0 ||
		!got.Expires.IsZero() || got.MaxTasks != 3 {
		t.Errorf("stored %+v, %v", got, err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"app"}, "nothing to change"},
		{[]string{"app", "--operations", "video,films"}, `--operations[1]: "films" is unknown; known are relay, video, realtime`},
		{[]string{"app", "--lane", "fast"}, `--lane: "fast" is unknown`},
		{[]string{"app", "--webhook-url", "http://127.0.0.1/"}, "--webhook-url: leads to a private"},
		{[]string{"app", "--webhook-secret", ""}, "--webhook-secret: is required with webhook_url"},
		{[]string{"app", "--expires", "2001-01-01"}, "--expires: is in the past"},
	} {
		if _, stderr, code := token(append([]string{"update"}, test.args...)...); code != 2 || !strings.Contains(stderr, test.want) {
			t.Errorf("%v: %d %s", test.args, code, stderr)
		}
	}
	if _, stderr, code := token("update", "nobody", "--lane", "low"); code != 1 || !strings.Contains(stderr, `there is no token "nobody"`) {
		t.Errorf("update nobody: %d %s", code, stderr)
	}

	if err := store.Seed(t.Context(), []tokens.Seed{{Token: tokens.Token{Name: "file", Group: "other"}, Key: "sk-of-the-file"}}); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := token("update", "file", "--lane", "low"); code != 1 ||
		!strings.Contains(stderr, "comes from the configuration file") {
		t.Errorf("update of a token of the file: %d %s", code, stderr)
	}
	if stdout, _, _ := token("list", "--group", "other"); !strings.Contains(stdout, "file") || strings.Contains(stdout, "app") {
		t.Errorf("list of a group:\n%s", stdout)
	}
	if stdout, _, _ := token("list", "--state", "revoked", "--json"); strings.TrimSpace(stdout) != "[]" {
		t.Errorf("list of the revoked:\n%s", stdout)
	}
}
