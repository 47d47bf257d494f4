package storage_test

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"modelrelay/storage"
)

// TestLimitsSayTheirDefaults: what people read of a limit says what 0 means for it.
func TestLimitsSayTheirDefaults(t *testing.T) {
	t.Parallel()
	limits := reflect.TypeFor[storage.TokenLimits]()
	for i, limit := range storage.ListLimits(storage.TokenLimits{}) {
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
	token := storage.Token{TokenLimits: storage.TokenLimits{RequestsPerMinute: 5, MaxTasks: 3}}
	change := storage.TokenChange{LimitChange: storage.LimitChange{MaxTasks: new(0), MaxSockets: new(storage.Unlimited)}}
	change.Apply(&token)
	if want := (storage.TokenLimits{RequestsPerMinute: 5, MaxSockets: -1}); token.TokenLimits != want {
		t.Errorf("got %+v, want %+v", token.TokenLimits, want)
	}
	want := token.TokenLimits
	var other storage.Token
	storage.TokenChange{LimitChange: storage.AllLimits(want)}.Apply(&other)
	if other.TokenLimits != want {
		t.Errorf("all of them: got %+v, want %+v", other.TokenLimits, want)
	}
}

// TestLimitsOfEarlierRecords: a record as every version wrote it, with its limits among the token's own fields.
func TestLimitsOfEarlierRecords(t *testing.T) {
	t.Parallel()
	const record = `{"id":"tok_1","name":"a","group":"g","requests_per_minute":5,"tokens_per_minute":6,"concurrency":7,"max_tasks":8,"max_sockets":9,"budget":1.5}`
	var token storage.Token
	if err := json.Unmarshal([]byte(record), &token); err != nil {
		t.Fatal(err)
	}
	want := storage.TokenLimits{RequestsPerMinute: 5, TokensPerMinute: 6, Concurrency: 7, MaxTasks: 8, MaxSockets: 9}
	if raw, err := json.Marshal(token); token.TokenLimits != want || token.Budget != 1.5 || err != nil || string(raw) != record {
		t.Errorf("read %+v, written %s, %v", token, raw, err)
	}
}

// TestSocketsHaveADefault: a token whose limit nobody set may hold 100 conversations, one with -1 any number.
func TestSocketsHaveADefault(t *testing.T) {
	t.Parallel()
	for set, want := range map[int]int{0: storage.DefaultSockets, 3: 3, storage.Unlimited: 0} {
		token := storage.Token{ID: "a", TokenLimits: storage.TokenLimits{MaxSockets: set}}
		if got := token.Sockets().Concurrency; got != want {
			t.Errorf("max_sockets %d: %d conversations at a time, want %d", set, got, want)
		}
	}
}
