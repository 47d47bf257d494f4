package console

import (
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
)

//go:embed words
var wordFiles embed.FS

// languages are those that all words are in; the first one serves who reads none of them.
func languages() []string { return []string{"en", "zh"} }

// words are the texts of the pages: language, key, text. A text has {name} where a value goes.
type words map[string]map[string]string

// loadWords reads words/<language>/<part>.txt: a line is "key = text", and one that begins with # is a comment.
func loadWords() words {
	all := make(words)
	for _, language := range languages() {
		texts := make(map[string]string)
		files, err := fs.Glob(wordFiles, path.Join("words", language, "*.txt"))
		if err != nil || len(files) == 0 {
			panic("console: no words in " + language)
		}
		for _, file := range files {
			content, err := wordFiles.ReadFile(file)
			if err != nil {
				panic("console: " + err.Error()) // it is part of the program
			}
			for n, line := range strings.Split(string(content), "\n") {
				line = strings.TrimSpace(line)
				if line == "" || strings.HasPrefix(line, "#") {
					continue
				}
				key, text, found := strings.Cut(line, " = ")
				if _, twice := texts[key]; !found || twice {
					panic(fmt.Sprintf("console: %s:%d: want key = text, each key once: %s", file, n+1, line))
				}
				texts[key] = text
			}
		}
		all[language] = texts
	}
	return all
}

// say is the text of a key in a language, with values in place of their names: name, value, name, value. A key without a
// text is shown as it is, so that a test sees it.
func (w words) say(language, key string, pairs ...any) string {
	text, ok := w[language][key]
	if !ok {
		if text, ok = w[languages()[0]][key]; !ok {
			return key
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		text = strings.ReplaceAll(text, fmt.Sprint("{", pairs[i], "}"), fmt.Sprint(pairs[i+1]))
	}
	return text
}

// has tells whether a key has a text.
func (w words) has(key string) bool { _, ok := w[languages()[0]][key]; return ok }

// languageOf is the one that a request wants: its cookie's, else the first of Accept-Language that there is.
func languageOf(r *http.Request, chosen string) string {
	if slices.Contains(languages(), chosen) {
		return chosen
	}
	best, weight := languages()[0], 0.0
	for part := range strings.SplitSeq(cut(r.Header.Get("Accept-Language"), 1<<10), ",") {
		tag, parameter, _ := strings.Cut(part, ";")
		base, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		q := 1.0
		if value, ok := strings.CutPrefix(strings.TrimSpace(parameter), "q="); ok {
			q, _ = strconv.ParseFloat(value, 64) // one that does not parse wants nothing
		}
		if slices.Contains(languages(), base) && q > weight {
			best, weight = base, q
		}
	}
	return best
}
