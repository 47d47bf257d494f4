package tokens_test

import (
	"testing"

	"modelrelay/storage/storagetest"
	"modelrelay/storage/tokens"
)

// TestInForce: a token has its own limits, else its group's, and none above the group's ceilings.
func TestInForce(t *testing.T) {
	t.Parallel()
	group := tokens.GroupLimits{
		Defaults: tokens.Defaults{Limits: tokens.Limits{RequestsPerMinute: 60, Concurrency: 9, ReadsPerMinute: tokens.Unlimited}, Budget: 5},
		Ceilings: tokens.Ceilings{Limits: tokens.Limits{RequestsPerMinute: 600, Concurrency: 8, MaxSockets: 10}, Budget: 50},
	}
	for _, test := range []struct {
		name      string
		own, want tokens.Token
	}{
		{"none of its own", tokens.Token{}, tokens.Token{Limits: tokens.Limits{
			RequestsPerMinute: 60, Concurrency: 8, MaxSockets: 10,
			ReadsPerMinute: -1,
		}, Budget: 5}},
		{
			"its own",
			tokens.Token{Limits: tokens.Limits{RequestsPerMinute: 600, Concurrency: 1, MaxSockets: 2, ReadsPerMinute: 7, MaxTasks: 3}, Budget: 50},
			tokens.Token{Limits: tokens.Limits{RequestsPerMinute: 600, Concurrency: 1, MaxSockets: 2, ReadsPerMinute: 7, MaxTasks: 3}, Budget: 50},
		},
		{
			"above the ceilings",
			tokens.Token{Limits: tokens.Limits{RequestsPerMinute: 601, MaxSockets: tokens.Unlimited}, Budget: 50.5},
			tokens.Token{Limits: tokens.Limits{RequestsPerMinute: 600, Concurrency: 8, MaxSockets: 10, ReadsPerMinute: -1}, Budget: 50},
		},
	} {
		if got := group.InForce(test.own); got.Limits != test.want.Limits || got.Budget != test.want.Budget {
			t.Errorf("%s: got %+v and %v, want %+v and %v", test.name, got.Limits, got.Budget, test.want.Limits, test.want.Budget)
		}
	}
	own := tokens.Token{Limits: tokens.Limits{Concurrency: 1000}, Budget: 7}
	if got := (tokens.GroupLimits{}).InForce(own); got.Limits != own.Limits || got.Budget != own.Budget {
		t.Errorf("a group without limits: got %+v", got)
	}
}

// TestSetGroups: limits of groups hold for tokens of the file and others, those in memory as well as those that come later,
// and change what is stored of none.
func TestSetGroups(t *testing.T) {
	t.Parallel()
	store := tokens.New(storagetest.Redis(t), nil)
	t.Cleanup(store.Close)
	made, key, err := store.Create(t.Context(), tokens.Token{Name: "made", Group: "team"})
	if err != nil {
		t.Fatal(err)
	}
	other, otherKey, err := store.Create(t.Context(), tokens.Token{Name: "other", Group: "others", Limits: tokens.Limits{Concurrency: 5}})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Seed(t.Context(), []tokens.Seed{{Token: tokens.Token{Name: "seeded", Group: "team"}, Key: "sk-seeded"}}); err != nil {
		t.Fatal(err)
	}
	held := func(key string, want int) {
		t.Helper()
		token, err := store.Authenticate(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if token.Concurrency != want {
			t.Errorf("token %q: got %d calls at a time, want %d", token.Name, token.Concurrency, want)
		}
	}
	held(key, 0)
	held("sk-seeded", 0)
	for _, limit := range []int{4, 2, 0} {
		store.SetGroups(map[string]tokens.GroupLimits{"team": {Defaults: tokens.Defaults{Limits: tokens.Limits{Concurrency: limit}}}})
		held(key, limit)
		held("sk-seeded", limit)
		held(otherKey, 5)
	}
	store.SetGroups(map[string]tokens.GroupLimits{
		"team":   {Defaults: tokens.Defaults{Limits: tokens.Limits{Concurrency: 3}}},
		"others": {Ceilings: tokens.Ceilings{Limits: tokens.Limits{Concurrency: 2}}},
	})
	_, late, err := store.Create(t.Context(), tokens.Token{Name: "late", Group: "team"})
	if err != nil {
		t.Fatal(err)
	}
	held(late, 3)
	held(otherKey, 2)
	if _, err := store.Update(t.Context(), made.ID, func(token *tokens.Token) error { token.MaxTasks = 1; return nil }); err != nil {
		t.Fatal(err)
	}
	held(key, 3)
	for id, want := range map[string]int{made.ID: 0, other.ID: 5, "seeded": 0} {
		if token, err := store.Find(t.Context(), id); err != nil || token.Concurrency != want {
			t.Errorf("%s is stored with %d calls at a time, want its own %d: %v", id, token.Concurrency, want, err)
		}
		if token, _, err := store.Credential(t.Context(), id); err != nil || token.Concurrency == want {
			t.Errorf("%s acts with %d calls at a time, which are its own: %v", id, token.Concurrency, err)
		}
	}
}

// TestSeedGroups: the tokens of a file that has changed and the limits of its groups change together; a file that is refused changes
// neither.
func TestSeedGroups(t *testing.T) {
	t.Parallel()
	store := tokens.New(storagetest.Redis(t), nil)
	t.Cleanup(store.Close)
	seed := func(name string, concurrency int) error {
		return store.SeedGroups(t.Context(), []tokens.Seed{{Token: tokens.Token{Name: name, Group: "team"}, Key: "sk-seeded"}},
			map[string]tokens.GroupLimits{"team": {Defaults: tokens.Defaults{Limits: tokens.Limits{Concurrency: concurrency}}}})
	}
	held := func(want int) {
		t.Helper()
		if token, err := store.Authenticate(t.Context(), "sk-seeded"); err != nil || token.Concurrency != want {
			t.Errorf("got %d calls at a time, want %d: %v", token.Concurrency, want, err)
		}
	}
	for _, limit := range []int{4, 2} {
		if err := seed("seeded", limit); err != nil {
			t.Fatal(err)
		}
		held(limit)
	}
	if err := seed("", 9); err == nil {
		t.Error("a token without a name was taken")
	}
	held(2)
}
