package tokens_test

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"modelrelay/storage/tokens"
)

// TestLimitTextsExplainZero: the text about a limit explains the value 0.
func TestLimitTextsExplainZero(t *testing.T) {
	t.Parallel()
	limits := reflect.TypeFor[tokens.Limits]()
	for i, limit := range tokens.ListLimits(tokens.Limits{}) {
		tag := limits.Field(i).Tag
		want := "; 0: no limit"
		if limit.Default > 0 {
			want = "; 0: " + strconv.Itoa(limit.Default) + ", -1: no limit"
		}
		if doc := tag.Get("doc"); !strings.HasSuffix(doc, want) || tag.Get("yaml") != limit.Key {
			t.Errorf("%s: key %q, doc %q; want an end %q", limit.Key, tag.Get("yaml"), doc, want)
		}
	}
}

// TestLimitChange: a change sets what it holds and leaves the rest.
func TestLimitChange(t *testing.T) {
	t.Parallel()
	token := tokens.Token{Limits: tokens.Limits{RequestsPerMinute: 5, MaxTasks: 3}}
	change := tokens.Change{LimitChange: tokens.LimitChange{MaxTasks: new(0), MaxSockets: new(tokens.Unlimited)}}
	change.Apply(&token)
	if want := (tokens.Limits{RequestsPerMinute: 5, MaxSockets: -1}); token.Limits != want {
		t.Errorf("got %+v, want %+v", token.Limits, want)
	}
	want := token.Limits
	var other tokens.Token
	tokens.Change{LimitChange: tokens.AllLimits(want)}.Apply(&other)
	if other.Limits != want {
		t.Errorf("all of them: got %+v, want %+v", other.Limits, want)
	}
}

// TestLimitsOfEarlierRecords: a record as every version wrote it, with its limits among the token's own fields.
func TestLimitsOfEarlierRecords(t *testing.T) {
	t.Parallel()
	const record = `{"id":"tok_1","name":"a","group":"g","requests_per_minute":5,"tokens_per_minute":6,"concurrency":7,"max_tasks":8,"max_sockets":9,"budget":1.5}`
	var token tokens.Token
	if err := json.Unmarshal([]byte(record), &token); err != nil {
		t.Fatal(err)
	}
	want := tokens.Limits{RequestsPerMinute: 5, TokensPerMinute: 6, Concurrency: 7, MaxTasks: 8, MaxSockets: 9}
	if raw, err := json.Marshal(token); token.Limits != want || token.Budget != 1.5 || err != nil || string(raw) != record {
		t.Errorf("read %+v, written %s, %v", token, raw, err)
	}
}

// TestSocketsHaveADefault: a token whose limit is not set may hold 100 conversations, one with -1 any number.
func TestSocketsHaveADefault(t *testing.T) {
	t.Parallel()
	for set, want := range map[int]int{0: tokens.DefaultSockets, 3: 3, tokens.Unlimited: 0} {
		token := tokens.Token{ID: "a", Limits: tokens.Limits{MaxSockets: set}}
		if got := token.Sockets().Concurrency; got != want {
			t.Errorf("max_sockets %d: %d conversations at a time, want %d", set, got, want)
		}
	}
}
