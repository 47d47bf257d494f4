package activities_test

import (
	"io"
	"slices"
	"testing"
	"time"

	"modelrelay/storage/audit"
	"modelrelay/storage/storagetest"
)

// TestSweepAudit: the sweeper writes each finished day to the archive once and removes the days past their retention.
func TestSweepAudit(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	file := func(ago int) string { return "audit/" + now.AddDate(0, 0, -ago).Format(time.DateOnly) + ".jsonl" }
	r, bucket := sweeper(t, file(400), file(11), file(9), "audit/notes.txt")
	log := audit.New(storagetest.Redis(t), nil)
	for ago, subject := range []string{"today", "yesterday"} {
		log.Record(t.Context(), audit.Entry{Time: now.AddDate(0, 0, -ago), By: audit.CLI, What: "revoke_token", Subject: subject})
	}
	r.acts.Sweeper.Audit, r.acts.Sweeper.AuditRetention = log, 10*24*time.Hour
	for range 2 {
		if _, err := sweep(t, r, r.acts.Sweeper.SweepOutputs); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{file(1), file(9), "audit/notes.txt"}
	slices.Sort(want)
	if got := bucket.Keys(); !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
	object, err := bucket.Open(t.Context(), file(1))
	if err != nil {
		t.Fatal(err)
	}
	defer object.Close()
	line, err := log.Unfiled(t.Context(), now)
	if text, _ := io.ReadAll(object); err != nil || len(line) != 0 || !slices.Contains([]string{"\n"}, string(text[len(text)-1:])) {
		t.Errorf("filed %q; to be filed %v, %v", text, line, err)
	}
}

// TestSweepCalls: the sweeper removes the days of the call history past their retention, and no day without a retention.
func TestSweepCalls(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	file := func(ago int) string {
		return "calls/" + now.AddDate(0, 0, -ago).Format(time.DateOnly) + "/07/A-1-2.jsonl.zst"
	}
	r, bucket := sweeper(t, file(0), file(2), file(30), file(32), "calls/notes/a.txt")
	for _, retention := range []time.Duration{0, 30 * 24 * time.Hour} {
		r.acts.Sweeper.CallsRetention = retention
		if _, err := sweep(t, r, r.acts.Sweeper.SweepOutputs); err != nil {
			t.Fatal(err)
		}
		want := []string{file(0), file(2), file(30), file(32), "calls/notes/a.txt"}
		if retention > 0 {
			want = slices.Delete(want, 3, 4)
		}
		slices.Sort(want)
		if got := bucket.Keys(); !slices.Equal(got, want) {
			t.Errorf("retention %v: left %v, want %v", retention, got, want)
		}
	}
}
