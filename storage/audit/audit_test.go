package audit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"modelrelay/storage/audit"
	"modelrelay/storage/storagetest"
)

// TestLog: entries come back newest first, by what is asked for, page by page; the log has a line of each.
func TestLog(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	log := audit.New(storagetest.Redis(t), slog.New(slog.NewJSONHandler(&lines, nil)))
	start := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for i := range 7 {
		entry := audit.Entry{
			Time: start.Add(time.Duration(i) * time.Minute), By: audit.Operator, Who: "anna", What: "update_token", Subject: fmt.Sprint("tok_", i),
			Changes: audit.Diff(map[string]int{"max_tasks": 1, "weight": 1}, map[string]int{"max_tasks": i + 2, "weight": 1}),
		}
		if i == 3 {
			entry.By, entry.Who, entry.Reason = audit.CLI, "cli", "no such token"
		}
		log.Record(t.Context(), entry)
	}
	read := func(filter audit.Filter, cursor string, limit int) (subjects []string, next string) {
		t.Helper()
		found, next, err := log.Page(t.Context(), filter, cursor, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range found {
			subjects = append(subjects, strings.TrimPrefix(entry.Subject, "tok_"))
		}
		if !audit.IsCursor(next) {
			t.Errorf("cursor %q", next)
		}
		return subjects, next
	}
	var all []string
	for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
		var part []string
		part, cursor = read(audit.Filter{Who: "anna"}, cursor, 2)
		all = append(all, part...)
	}
	if !slices.Equal(all, []string{"6", "5", "4", "2", "1", "0"}) {
		t.Errorf("anna's %v", all)
	}
	for _, test := range []struct {
		filter audit.Filter
		want   string
	}{
		{audit.Filter{Outcome: audit.Refused}, "3"},
		{audit.Filter{By: "cli"}, "3"},
		{audit.Filter{Subject: "tok_5"}, "5"},
		{audit.Filter{What: "none"}, ""},
		{audit.Filter{Since: start.Add(5 * time.Minute)}, "6 5"},
		{audit.Filter{Until: start.Add(2 * time.Minute)}, "1 0"},
	} {
		if got, next := read(test.filter, "", 50); strings.Join(got, " ") != test.want || next != "" {
			t.Errorf("%+v: got %v, next %q", test.filter, got, next)
		}
	}
	newest, _, _ := log.Page(t.Context(), audit.Filter{}, "", 1)
	if change := newest[0].Changes; len(change) != 1 || change[0].Field != "max_tasks" || string(change[0].Old) != "1" ||
		string(change[0].New) != "8" {
		t.Errorf("changes %s", newest[0].Changes)
	}
	if got := strings.Count(lines.String(), `"msg":"audit","by":`); got != 7 {
		t.Errorf("%d lines in the log: %s", got, lines.String())
	}
}

// TestLineOfText: a log whose lines are no JSON shows values, not their bytes.
func TestLineOfText(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	log := audit.New(storagetest.Redis(t), slog.New(slog.NewTextHandler(&lines, nil)))
	log.Record(t.Context(), audit.Entry{By: audit.Operator, What: "update_token", Changes: []audit.Change{
		{Field: "disabled", Old: json.RawMessage("false"), New: json.RawMessage("true")}, audit.Set("models", []string{"a b"}),
	}})
	if want := `changes="disabled: false → true; models: – → [\"a b\"]"`; !strings.Contains(lines.String(), want) {
		t.Errorf("want %s in %s", want, lines.String())
	}
}

// TestDays: a finished day is filed once, whole, and again when it grew meanwhile.
func TestDays(t *testing.T) {
	t.Parallel()
	log := audit.New(storagetest.Redis(t), nil)
	now := time.Date(2026, 11, 22, 0, 0, 1, 0, time.UTC)
	record := func(at time.Time, subject string) {
		log.Record(t.Context(), audit.Entry{Time: at, By: audit.File, What: audit.Reload, Subject: subject})
	}
	record(now.Add(-2*time.Second), "a")
	record(now, "today")
	unfiled := func() []string {
		days, err := log.Unfiled(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		return days
	}
	if got := unfiled(); !slices.Equal(got, []string{"2026-11-21"}) {
		t.Fatalf("unfiled %v", got)
	}
	lines, entries, err := log.Day(t.Context(), "2026-11-21")
	if err != nil || entries != 1 || !json.Valid(bytes.TrimSpace(lines)) || !bytes.HasSuffix(lines, []byte("}\n")) {
		t.Errorf("day %q of %d, %v", lines, entries, err)
	}
	record(now.Add(-2*time.Second), "late")
	if err := log.Filed(t.Context(), "2026-11-21", entries); err != nil || len(unfiled()) != 1 {
		t.Errorf("a day that grew is not to be filed any more: %v", err)
	}
	if lines, entries, _ = log.Day(t.Context(), "2026-11-21"); entries != 2 || !bytes.Contains(lines, []byte("late")) {
		t.Errorf("day %q of %d", lines, entries)
	}
	if err := log.Filed(t.Context(), "2026-11-21", entries); err != nil || len(unfiled()) != 0 {
		t.Errorf("a filed day is still to be filed: %v", err)
	}
}

// TestAway: what Redis did not take is there when it is back, and a huge entry is cut.
func TestAway(t *testing.T) {
	t.Parallel()
	server, stop := storagetest.Miniredis(t)
	_ = stop
	log := audit.New(storagetest.Client(t, "redis://"+server.Addr()), nil)
	server.SetError("away")
	log.Record(t.Context(), audit.Entry{
		By: audit.Operator, What: "fail_task", Reason: strings.Repeat("ü", 5_000),
		Changes: []audit.Change{audit.Set("x", strings.Repeat("y", 5_000))},
	})
	server.SetError("")
	if err := log.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, _, err := log.Page(t.Context(), audit.Filter{}, "", 10)
	if err != nil || len(found) != 1 || found[0].Outcome != audit.Refused || len(found[0].Reason) > 1_100 ||
		len(found[0].Changes[0].New) > 600 || !json.Valid(found[0].Changes[0].New) {
		t.Errorf("got %+v, %v", found, err)
	}
}
