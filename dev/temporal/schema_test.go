package temporal

import (
	"database/sql"
	"path/filepath"
	"testing"
)

// TestTrim: without most of its indexes the table of executions is searched as before, also in full text, and a database
// may be trimmed whenever it is opened.
func TestTrim(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), fileName)
	for range 2 {
		if _, err := openStore(file); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	one := func(query string) (n int) {
		t.Helper()
		if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return n
	}
	do := func(statement string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if n := one("SELECT count(*) FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = '" + visibility + "'"); n > 20 ||
		n < 5 {
		t.Errorf("%d indexes are left", n)
	}
	const (
		builds = "SELECT count(*) FROM executions_visibility_fts_keyword_list WHERE executions_visibility_fts_keyword_list MATCH 'BuildIds : "
		texts  = "SELECT count(*) FROM executions_visibility_fts_text WHERE executions_visibility_fts_text MATCH 'Text01 : "
	)
	found := func(when, table, word string, want int) {
		t.Helper()
		if got := one(table + word + "'"); got != want {
			t.Errorf("%s: %s is found %d times, want %d", when, word, got, want)
		}
	}
	set := func(attributes string) {
		t.Helper()
		do("UPDATE " + visibility + " SET search_attributes = '" + attributes + "' WHERE run_id = 'r'")
	}
	do("INSERT INTO " + visibility + " (namespace_id, run_id, start_time, execution_time, workflow_id, workflow_type_name, status, encoding, search_attributes)" +
		" VALUES ('n', 'r', 0, 0, 'w', 'Video', 1, '', '{\"Keyword01\":\"a\"}')")
	set(`{"Keyword01":"b","BuildIds":"first"}`)
	found("with a build", builds, "first", 1)
	set(`{"Keyword01":"c","BuildIds":"first","Text01":"a harbour at dawn"}`)
	found("with a text too", builds, "first", 1)
	found("with a text too", texts, "harbour", 1)
	set(`{"Keyword01":"d","BuildIds":"second","Text01":"a harbour at dawn"}`)
	found("with another build", builds, "first", 0)
	found("with another build", builds, "second", 1)
	found("with another build", texts, "harbour", 1)
	set(`{"Keyword01":"e","BuildIds":"second"}`)
	found("without the text", texts, "harbour", 0)
	do("DELETE FROM " + visibility + " WHERE run_id = 'r'")
	found("deleted", builds, "second", 0)
	for table := range fullText() {
		do("INSERT INTO " + table + " (" + table + ") VALUES ('integrity-check')")
	}
}
