package main_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"modelrelay/api/anthropic"
	"modelrelay/api/edge"
	"modelrelay/api/gemini"
	"modelrelay/api/openai"
	"modelrelay/api/videos"
	"modelrelay/cmd/gateway/docs"
	"modelrelay/providers"
	"modelrelay/providers/vendors"
	"modelrelay/workflows"
)

// tableOf returns the rows of the tables of a page whose first cell is a quoted word, by that word. heading is the heading above the
// tables, "" for the whole page.
func tableOf(t *testing.T, name, heading string) map[string][]string {
	t.Helper()
	page, err := docs.Pages.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	if heading != "" {
		_, rest, found := strings.Cut(text, "\n## "+heading+"\n")
		if !found {
			t.Fatalf("%s has no heading %q", name, heading)
		}
		text, _, _ = strings.Cut(rest, "\n## ")
	}
	rows := map[string][]string{}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if word, quotes := strings.CutPrefix(cells[0], "`"); quotes && len(cells) > 1 {
			rows[strings.TrimSuffix(word, "`")] = cells[1:]
		}
	}
	return rows
}

// constants returns the values of the text constants of a source file whose names match.
func constants(t *testing.T, file, names string) []string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(repository, file))
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, m := range regexp.MustCompile(`(?m)^\s+`+names+`\s*= "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1) {
		values = append(values, m[1])
	}
	if len(values) == 0 {
		t.Fatalf("%s has no constants %s", file, names)
	}
	return values
}

// sameNames compares the first cells of a table with what the code has.
func sameNames(t *testing.T, page string, rows map[string][]string, want []string) {
	t.Helper()
	for _, name := range want {
		if _, ok := rows[name]; !ok {
			t.Errorf("%s has no row %s", page, name)
		}
	}
	for name := range rows {
		if !slices.Contains(want, name) {
			t.Errorf("%s has a row %s, which the code does not have", page, name)
		}
	}
}

// TestErrorCodesPage compares the page of error codes with what each format renders, and with the codes of failed tasks.
func TestErrorCodesPage(t *testing.T) {
	t.Parallel()
	const page = "reference/error-codes.md"
	rows := tableOf(t, page, "Answers")
	kinds := constants(t, "providers/fault.go", `\w+\s+Kind`)
	sameNames(t, page, rows, kinds)
	formats := []*edge.Format{openai.Format(), anthropic.Format(), gemini.Format(), videos.VendorCFormat()}
	for _, kind := range kinds {
		status := edge.Status(providers.Kind(kind))
		want := []string{strconv.Itoa(status)}
		for _, format := range formats {
			body, err := json.Marshal(format.Fault(&providers.Fault{Kind: providers.Kind(kind), Message: "m"}, status, "r"))
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, codeIn(t, body))
		}
		if got := rows[kind]; len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Errorf("%s: row %s is %q, want %q", page, kind, got, want)
		}
	}
	failed := append(constants(t, "providers/failure.go", `Failed\w+`), constants(t, "workflows/state.go", `Code\w+`)...)
	sameNames(t, page, tableOf(t, page, "Failed tasks"), failed)
}

// codeIn returns the word or number by which a format's error body names its cause, as the page writes it.
func codeIn(t *testing.T, body []byte) string {
	t.Helper()
	var shown struct {
		Code  int
		Error struct {
			Code   any
			Type   *string
			Status string
		}
	}
	if err := json.Unmarshal(body, &shown); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	code, isText := shown.Error.Code.(string)
	switch {
	case shown.Code != 0:
		return strconv.Itoa(shown.Code)
	case isText:
		return "`" + code + "`"
	case shown.Error.Status != "":
		return "`" + shown.Error.Status + "`"
	case shown.Error.Type != nil:
		return "`" + *shown.Error.Type + "`"
	}
	return "–"
}

// TestHeadersPage compares the answer headers of the page with those that pages of other origins may read.
func TestHeadersPage(t *testing.T) {
	t.Parallel()
	const page = "reference/headers.md"
	source, err := os.ReadFile(filepath.Join(repository, "api", "edge", "cors.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(source), "ExposedHeaders: []string{")
	list, _, found := strings.Cut(list, "\t\t},\n")
	if !found {
		t.Fatal("the list of exposed headers was not found")
	}
	var want []string
	for _, m := range regexp.MustCompile(`"([\w-]+)"`).FindAllStringSubmatch(list, -1) {
		want = append(want, m[1])
	}
	text, err := docs.Pages.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, answers, _ := strings.Cut(string(text), "\n## Answers\n")
	var got []string
	for _, m := range regexp.MustCompile("`([A-Z][\\w-]+)[:`]").FindAllStringSubmatch(answers, -1) {
		got = append(got, m[1])
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s has %q\nthe code exposes %q", page, got, want)
	}
}

// TestVendorPages compares the tables of vendors with the code.
func TestVendorPages(t *testing.T) {
	t.Parallel()
	const page, videoPage = "reference/vendors.md", "reference/video-vendors.md"
	rows, videoRows := tableOf(t, page, ""), tableOf(t, videoPage, "")
	var names, makers []string
	for name, vendor := range vendors.New(http.DefaultClient) {
		names = append(names, name)
		if row := rows[name]; len(row) == 4 && strings.HasPrefix(row[2], "optional") != (vendor.BaseURL != "") {
			t.Errorf("%s: base_url of %s is %q, the code has %q", page, name, row[2], vendor.BaseURL)
		}
		if vendor.Video == nil {
			continue
		}
		makers = append(makers, name)
		row := videoRows[name]
		if len(row) != 9 {
			t.Errorf("%s: the row of %s has %d cells, want 10", videoPage, name, len(row)+1)
			continue
		}
		_, cancels := vendor.Video.(providers.Canceler)
		_, finds := vendor.Video.(providers.Finder)
		_, remixes := vendor.Video.(providers.Remixer)
		_, pictures := vendor.Video.(providers.Variants)
		pace := "–"
		if least := providers.PaceOf(vendor.Video).Least; least > 0 {
			pace = strconv.Itoa(int(least.Seconds()))
		}
		for i, has := range []bool{cancels, finds, remixes, pictures} {
			column := []string{"cancel", "lookup", "remix", "pictures"}[i]
			if got := strings.HasPrefix(row[2+i], "yes"); got != has {
				t.Errorf("%s: %s of %s is %q, the code has %v", videoPage, column, name, row[2+i], has)
			}
		}
		if row[6] != pace {
			t.Errorf("%s: poll of %s is %s, the code has %s", videoPage, name, row[6], pace)
		}
	}
	sameNames(t, page, rows, names)
	sameNames(t, videoPage, videoRows, makers)
}

// TestSearchAttributesPages: the pages that set up a namespace add each search attribute that the product registers.
func TestSearchAttributesPages(t *testing.T) {
	t.Parallel()
	names := strings.Join(workflows.SearchAttributes(), " ")
	for _, name := range []string{"operate/aws.md", "operate/temporal-cloud.md"} {
		if page, err := docs.Pages.ReadFile(name); err != nil || !strings.Contains(string(page), "for name in "+names+"; do\n") {
			t.Errorf("%s does not add %s (%v)", name, names, err)
		}
	}
}
