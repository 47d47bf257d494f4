package audit_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"modelrelay/storage/audit"
	"modelrelay/storage/storagetest"
)

// TestGuestsAreBounded: holders of tokens and unauthenticated clients get a bounded number of entries an hour, each and
// together. Every entry of an operator is stored. The log has every entry.
func TestGuestsAreBounded(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	log := audit.New(storagetest.Redis(t), slog.New(slog.NewJSONHandler(&lines, nil)))
	start := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	at, recorded := start, 0
	record := func(by audit.Kind, who, from string) {
		log.Record(t.Context(), audit.Entry{Time: at, By: by, Who: who, From: from, What: audit.SignIn})
		at, recorded = at.Add(time.Millisecond), recorded+1
	}
	kept := func(by audit.Kind, who string) int {
		t.Helper()
		found, _, err := log.Page(t.Context(), audit.Filter{By: string(by), Who: who}, "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	for i := range 30 {
		record(audit.Token, "tok_loop", "192.0.2.1")
		record(audit.Operator, "anna", "192.0.2.2")
		record(audit.Unauthenticated, "", fmt.Sprintf("192.0.2.%d", 3+i%2))
	}
	if a, b, c := kept(audit.Token, "tok_loop"), kept(audit.Operator, "anna"), kept(audit.Unauthenticated, ""); a != 20 || b != 30 || c != 30 {
		t.Errorf("stored %d of one token, %d of an operator, %d of unauthenticated clients", a, b, c)
	}
	for i := range 100 {
		record(audit.Unauthenticated, "", fmt.Sprintf("198.51.100.%d", i))
	}
	if all := kept(audit.Unauthenticated, ""); all != 100 {
		t.Errorf("stored %d of unauthenticated clients in an hour", all)
	}
	at = start.Add(time.Hour)
	record(audit.Token, "tok_loop", "192.0.2.1")
	if got := kept(audit.Token, "tok_loop"); got != 21 {
		t.Errorf("stored %d of the token in the next hour", got)
	}
	if got := strings.Count(lines.String(), `"msg":"audit"`); got != recorded {
		t.Errorf("%d lines in the log, want %d", got, recorded)
	}
}
