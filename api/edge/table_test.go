package edge_test

import (
	"encoding/csv"
	"strings"
	"testing"

	"modelrelay/api/edge"
)

// TestCellsAreHarmless: a spreadsheet executes no cell as a formula.
func TestCellsAreHarmless(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"=1+1": "'=1+1", "+1+cmd|' /C calc'!A0": "'+1+cmd|' /C calc'!A0", "-2+3": "'-2+3", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1",
		`=HYPERLINK("http://x")`: `'=HYPERLINK("http://x")`, "a=1": "a=1", "-1.50": "-1.50", "1,200": "1,200", "app": "app", "": "",
	} {
		var out strings.Builder
		table := edge.NewTable(&out, []string{"name", "text"})
		table.Write([]string{"cell", text})
		err := table.Flush()
		rows, bad := csv.NewReader(strings.NewReader(out.String())).ReadAll()
		if err != nil || bad != nil || len(rows) != 2 || rows[1][1] != want {
			t.Errorf("%q: got %q, want %q; errors %v, %v", text, rows, want, err, bad)
		}
	}
}
