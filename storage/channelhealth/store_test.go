package channelhealth_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/channelhealth"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
)

// TestHealthRests: a rest that one process tells is heard by the others and kept for those that come later.
func TestHealthRests(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	here, there := channelhealth.New(client), channelhealth.New(client)
	heard, subscribed := make(chan channelhealth.Cooldown, 100), make(chan struct{}, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		there.Follow(ctx, func() { subscribed <- struct{}{} }, func(rest channelhealth.Cooldown) { heard <- rest })
	}()
	<-subscribed
	tell := func(by *channelhealth.Store, rest channelhealth.Cooldown) {
		t.Helper()
		if err := by.Publish(t.Context(), rest); err != nil {
			t.Fatal(err)
		}
	}
	tell(there, channelhealth.Cooldown{Name: "own", Left: time.Hour, Text: []byte(`{}`)}) // nobody hears itself
	tell(here, channelhealth.Cooldown{Name: "a 1", Left: time.Minute, Text: []byte(`{"why":"no money"}`)})
	tell(here, channelhealth.Cooldown{Name: "a 1", Left: time.Second, Text: []byte(`{"why":"shorter"}`)}) // no news
	tell(here, channelhealth.Cooldown{Name: "b", Left: 2 * time.Minute, Text: []byte(`{}`)})
	for _, want := range []channelhealth.Cooldown{{Name: "a 1", Left: time.Minute, Text: []byte(`{"why":"no money"}`)}, {Name: "b", Left: 2 * time.Minute, Text: []byte(`{}`)}} {
		if got := <-heard; got.Name != want.Name || got.Left != want.Left || string(got.Text) != string(want.Text) {
			t.Errorf("heard %+v, want %+v", got, want)
		}
	}
	tell(here, channelhealth.Cooldown{Name: "b"})
	if got := <-heard; got.Name != "b" || got.Left != 0 {
		t.Errorf("heard %+v, want the end of b", got)
	}
	rests, err := there.Cooldowns(t.Context())
	slices.SortFunc(rests, func(a, b channelhealth.Cooldown) int { return int(a.Left - b.Left) })
	if err != nil || len(rests) != 2 || rests[0].Name != "a 1" || string(rests[0].Text) != `{"why":"no money"}` {
		t.Fatalf("got rests %+v, %v", rests, err)
	}
	if left := rests[0].Left; left <= 50*time.Second || left > time.Minute {
		t.Errorf("got %s left of a minute", left)
	}
	tell(here, channelhealth.Cooldown{Name: "a 1", Left: time.Second, Text: []byte(`{"why":"firm"}`), Firm: true})
	if got := <-heard; got.Left != time.Second || string(got.Text) != `{"why":"firm"}` {
		t.Errorf("heard %+v, want the firm one", got)
	}
	// One that is over stays known: whether it has helped nobody has said yet.
	tell(here, channelhealth.Cooldown{Name: "short", Left: time.Millisecond, Text: []byte(`{}`)})
	testwait.Eventually(t, "a rest that is over", storagetest.Patience, func() bool {
		rests, err := there.Cooldowns(t.Context())
		return err == nil && slices.ContainsFunc(rests, func(r channelhealth.Cooldown) bool { return r.Name == "short" && r.Left == 0 })
	})
	cancel()
	<-ended
}

// TestHealthFollowsAnOpenClient: who follows ends with the client, also where nobody ends its context.
func TestHealthFollowsAnOpenClient(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	subscribed, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		channelhealth.New(client).Follow(t.Context(), func() { subscribed <- struct{}{} }, func(channelhealth.Cooldown) {})
	}()
	<-subscribed
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	<-ended
}

// TestHealthFigures: what living processes show can be read, and is gone soon after they are.
func TestHealthFigures(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	client := storagetest.Client(t, "redis://"+server.Addr())
	one, two := channelhealth.New(client), channelhealth.New(client)
	two.Introduce([]byte("v2"))
	shown := func() []string {
		t.Helper()
		figures, err := one.Figures(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, text := range figures {
			texts = append(texts, string(text))
		}
		slices.Sort(texts)
		return texts
	}
	show := func(by *channelhealth.Store, text string) {
		t.Helper()
		if err := by.Show(t.Context(), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if got := shown(); len(got) != 0 {
		t.Errorf("got %q before anybody showed anything", got)
	}
	show(one, "old")
	show(one, "1")
	show(two, "2")
	if got := shown(); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("got %q", got)
	}
	if abouts, err := one.Abouts(t.Context()); err != nil || len(abouts) != 1 || string(abouts[0]) != "v2" {
		t.Errorf("introduced: %q, %v", abouts, err)
	}
	if err := two.Hide(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := shown(); !slices.Equal(got, []string{"1"}) {
		t.Errorf("got %q after one has ended", got)
	}
	if abouts, err := one.Abouts(t.Context()); err != nil || len(abouts) != 0 {
		t.Errorf("introduced after it has ended: %q, %v", abouts, err)
	}
	server.FastForward(16 * time.Second)
	if got := shown(); len(got) != 0 {
		t.Errorf("got %q of a process that was killed", got)
	}
	server.Close()
	if _, err := one.Figures(t.Context()); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("got %v with redis away", err)
	}
}
