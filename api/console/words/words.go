// Package words has the texts of the console's pages in every language: by key, in <language>/<part>.txt. No page has any of its own.
package words

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

//go:embed en zh
var files embed.FS

// Languages are those that all words are in; the first one serves readers of other languages.
func Languages() []string { return []string{"en", "zh"} }

// Texts are those of the pages: language, key, text. A text has {name} where a value goes.
type Texts map[string]map[string]string

// Load reads <language>/<part>.txt: a line is "key = text", and one that begins with # is a comment.
func Load() Texts {
	all := make(Texts)
	for _, language := range Languages() {
		texts := make(map[string]string)
		names, err := fs.Glob(files, path.Join(language, "*.txt"))
		if err != nil || len(names) == 0 {
			panic("console: no words in " + language)
		}
		for _, file := range names {
			content, err := files.ReadFile(file)
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

// Say is the text of a key in a language, with values in place of their names: name, value, name, value. {name:one|more} is what is before
// the | where the value is 1, else what is after it. A key without a text is shown as it is, so that a test sees it.
func (w Texts) Say(language, key string, pairs ...any) string {
	text, ok := w[language][key]
	if !ok {
		if text, ok = w[Languages()[0]][key]; !ok {
			return key
		}
	}
	if len(pairs) < 2 || !strings.Contains(text, "{") {
		return text
	}
	values := make(map[string]string, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		values[fmt.Sprint(pairs[i])] = fmt.Sprint(pairs[i+1])
	}
	return fill(text, values)
}

// Finding is the text finding.<code>, of a check of the set-up or of a channel's test, with values in place of their names; "" of no
// code. Where values has a reason that is known, its sentence stands for the error.
func (w Texts) Finding(language, code string, values map[string]string) string {
	if code == "" {
		return ""
	}
	pairs := make([]any, 0, 2*len(values))
	for name, value := range values {
		if reason := "reason." + values["reason"]; name == "error" && w.Has(reason) {
			value = w.Say(language, reason, "error", value)
		}
		pairs = append(pairs, name, value)
	}
	return w.Say(language, "finding."+code, pairs...)
}

// fill replaces the placeholders by the values. It does not replace placeholders in a value.
func fill(text string, values map[string]string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		place, after, closed := strings.Cut(rest, "}")
		name, forms, several := strings.Cut(place, ":")
		value, known := values[name]
		switch one, more, _ := strings.Cut(forms, "|"); {
		case !closed || !known: // it stands as it is
			out.WriteByte('{')
			text = rest
			continue
		case !several:
			out.WriteString(value)
		case value == "1":
			out.WriteString(one)
		default:
			out.WriteString(more)
		}
		text = after
	}
}

// Has reports whether a key has a text.
func (w Texts) Has(key string) bool { _, ok := w[Languages()[0]][key]; return ok }

// maxAccepted is how much of Accept-Language is read, in bytes: many times what a browser sends.
const maxAccepted = 1 << 10

// Preferred is the language that a request wants: its cookie's, else the first of Accept-Language that there is.
func Preferred(r *http.Request, chosen string) string {
	if slices.Contains(Languages(), chosen) {
		return chosen
	}
	best, weight := Languages()[0], 0.0
	accepted := r.Header.Get("Accept-Language")
	accepted = accepted[:min(len(accepted), maxAccepted)]
	for part := range strings.SplitSeq(accepted, ",") {
		tag, parameter, _ := strings.Cut(part, ";")
		base, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		q := 1.0
		if value, ok := strings.CutPrefix(strings.TrimSpace(parameter), "q="); ok {
			q, _ = strconv.ParseFloat(value, 64) // one that does not parse wants nothing
		}
		if slices.Contains(Languages(), base) && q > weight {
			best, weight = base, q
		}
	}
	return best
}
