package console

import (
	"encoding/json"
	"testing"

	"modelrelay/api/console/snippets"
)

// A form begins with a model that somebody answers for, as far as there is one.
func TestPreferredModel(t *testing.T) {
	t.Parallel()
	const broken, fine, usual = `{"id":"a","formats":["openai.chat"],"channels":[{"state":"open"}]}`, `{"id":"b","formats":["openai.chat"],"channels":[{"state":"open"},{"state":"closed"}]}`, `{"id":"gpt-4o-mini"}`
	for list, want := range map[string]string{
		`[]`: "", `[` + broken + `]`: "a", `[` + broken + `,` + fine + `]`: "b", `[` + fine + `,` + broken + `]`: "b", `[` + broken + `,` + usual + `]`: "gpt-4o-mini",
		`[{"id":"own","formats":["openai.chat"]},` + fine + `]`: "own",
	} {
		var models []tryModel
		if err := json.Unmarshal([]byte(list), &models); err != nil {
			t.Fatal(err)
		}
		if got := preferred(models, snippets.Chat); got != want {
			t.Errorf("%s: got %q, want %q", list, got, want)
		}
	}
}
