package main_test

import (
	"strings"
	"testing"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/ledger"
	"modelrelay/storage/limits"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/tokens"
)

func TestUsageSums(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	url := "redis://" + server.Addr()
	client := storagetest.Client(t, url)
	path := writeFile(t, "gateway.yaml", "redis: {url: \""+url+"\"}\nprices: {gpt-4o: {input: 1}}\ntokens: [{name: app, key: sk-app}]\n")
	usage := func(args ...string) (string, string, int) {
		t.Helper()
		return run(t, nil, append(append([]string{"usage"}, args...), "--config", path)...)
	}
	store := tokens.New(client, nil)
	t.Cleanup(store.Close)
	if err := store.Seed(t.Context(), []tokens.Seed{{Token: tokens.Token{Name: "app", Group: "g"}, Key: "sk-app"}}); err != nil {
		t.Fatal(err)
	}
	day := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	book := ledger.NewUsage(client, nil)
	for _, model := range []string{"gpt-4o", "free"} {
		book.Record(ledger.Entry{
			Token: "app", Model: model, Channel: "c", At: day, Requests: 2, InputTokens: 10, Audio: 1500 * time.Millisecond, Cost: 1_500_000_001,
		})
	}
	book.Record(ledger.Entry{Token: "other", Model: "gpt-4o", At: day, Requests: 1})
	if err := book.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	days := []string{"--from", "2026-01-01", "--to", "2026-02-01"}
	const head = "day,token,model,requests,tasks,failed,input_tokens,cached_tokens,output_tokens,images,audio_seconds,video_seconds,cost\n"
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"csv": {[]string{"--format", "csv"}, head + `2026-01-31,app,free,2,0,0,10,0,0,0,1.5,0,1.500000001
2026-01-31,app,gpt-4o,2,0,0,10,0,0,0,1.5,0,1.500000001
2026-01-31,other,gpt-4o,1,0,0,0,0,0,0,0,0,0
`},
		"by model": {
			[]string{"--format", "csv", "--token", "app", "--model", "free", "--by", "model"},
			head[len("day,token,"):] + "free,2,0,0,10,0,0,0,1.5,0,1.500000001\n",
		},
	} {
		if got, stderr, code := usage(append(test.args, days...)...); code != 0 || got != test.want {
			t.Errorf("%s: %d %s\n%s\nwant\n%s", name, code, stderr, got, test.want)
		}
	}
	stdout, stderr, code := usage(append(days, "--by", "token")...)
	if code != 0 || stderr != "" || !strings.HasPrefix(stdout, "TOKEN") || !strings.Contains(stdout, "3.000000002") {
		t.Errorf("table: %d %s\n%s", code, stderr, stdout)
	}
	if _, stderr, _ = usage(days...); !strings.Contains(stderr, "Without a price in the configuration: free.") {
		t.Errorf("nothing of a model without a price: %s", stderr)
	}
	rows := decode[[]map[string]any](t, first(usage(append(days, "--json")...)))
	if len(rows) != 3 || rows[0]["priced"] != false || rows[1]["priced"] != true || rows[1]["cost"] != 1.500000001 {
		t.Errorf("json %v", rows)
	}
	if stdout, _, code = usage("--format", "csv"); code != 0 || stdout != head {
		t.Errorf("of the last days: %d %s", code, stdout)
	}
	if stdout, stderr, code = usage("--from", "2026-01-31T15:00:00Z", "--to", "2026-01-31", "--token", "app", "--model", "free", "--by",
		"model", "--format", "csv"); code != 0 || !strings.Contains(stdout, "\nfree,2,") {
		t.Errorf("from within the last day: %d %s\n%s", code, stderr, stdout)
	}
	for _, wrong := range [][]string{
		{"--by", "week"},
		{"--from", "soon"},
		{"--from", "2026-02-01", "--to", "2026-01-01"},
		{"--charge", "a", "--refund", "b"},
	} {
		if _, _, code := usage(wrong...); code != 2 {
			t.Errorf("%v: code %d", wrong, code)
		}
	}
	if _, stderr, code := usage("--token", "nobody"); code != 1 || !strings.Contains(stderr, `no token "nobody"`) {
		t.Errorf("an unknown token: %d %s", code, stderr)
	}
}

func first(stdout, _ string, _ int) string { return stdout }

// TestUsageUnsettled: the reservations of a killed gateway are listed until an operator settles them.
func TestUsageUnsettled(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	url := "redis://" + server.Addr()
	client := storagetest.Client(t, url)
	path := writeFile(t, "gateway.yaml", "redis: {url: \""+url+"\"}\n")
	usage := func(args ...string) string {
		t.Helper()
		stdout, stderr, code := run(t, nil, append(append([]string{"usage"}, args...), "--config", path)...)
		if code != 0 {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
		return stdout
	}
	limiter := limits.New(client, nil)
	for range 3 {
		if _, err := limiter.Admit(t.Context(), storage.Allowance{Token: "app", Budget: storage.Billionths(10)},
			limits.Cost{Requests: 1, Money: 250_000_000, Model: "gpt-4o"}); err != nil {
			t.Fatal(err)
		}
	}
	if got := usage("--unsettled"); strings.Count(got, "\n") != 1 {
		t.Errorf("calls in flight are listed:\n%s", got)
	}
	if err := limiter.Close(t.Context()); err != nil { // nothing confirms them any more
		t.Fatal(err)
	}
	type row struct{ ID, Token, Model, Why string }
	server.FastForward(2 * time.Minute) // its sign of life holds for one
	rows := decode[[]row](t, usage("--unsettled", "--json"))
	if len(rows) != 3 || rows[0].Token != "app" || rows[0].Model != "gpt-4o" || rows[0].Why == "" {
		t.Fatalf("unsettled %+v", rows)
	}
	if got := usage("--charge", rows[0].ID); got != "charged 1, 0.25 in all\n" {
		t.Errorf("charge: %s", got)
	}
	store := tokens.New(client, nil)
	t.Cleanup(store.Close)
	if err := store.Seed(t.Context(), []tokens.Seed{{Token: tokens.Token{Name: "app", Group: "g", Budget: 10}, Key: "sk-app"}}); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := run(t, nil, "token", "show", "app", "--config", path)
	if lines := strings.Fields(stdout); code != 0 || !strings.HasSuffix(strings.Join(lines, " "), "spent 0.25 reserved 0.5") {
		t.Errorf("token show: %d %s\n%s", code, stderr, stdout)
	}
	if got := usage("--refund", "all"); got != "refunded 2, 0.5 in all\n" {
		t.Errorf("refund: %s", got)
	}
	if _, stderr, code := run(t, nil, "usage", "--refund", rows[0].ID, "--config", path); code != 1 ||
		!strings.Contains(stderr, "no unsettled reservation") {
		t.Errorf("a second time: %d %s", code, stderr)
	}
	if got := usage("--by", "model", "--format", "csv"); !strings.HasSuffix(got, "gpt-4o,1,0,1,0,0,0,0,0,0,0.25\n") {
		t.Errorf("ledger: %s", got)
	}
}
