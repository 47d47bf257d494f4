// Package words has the texts of the console's pages in all its languages. A text is in <language>/<part>.txt with a key. Pages contain no
// texts.
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

// Languages returns the languages of the texts. The first one is for readers of other languages.
func Languages() []string { return []string{"en", "zh"} }

// Texts are the texts by language and key. A text has {name} for a value.
type Texts map[string]map[string]string

// Load reads <language>/<part>.txt: a line is "key = text", and a line with the prefix # is a comment.
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
				panic("console: " + err.Error()) // the file is embedded
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

// Text returns the text of a key in a language, with the values of pairs: name, value, name, value. The placeholder {name:one|more} becomes
// the part before the | for the value 1, else the part after it. The text of an unknown key is the key, so that tests find it.
func (w Texts) Text(language, key string, pairs ...any) string {
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

// Finding returns the text finding.<code> of a check of the setup or of a channel test, with the values; "" without a code. If values has a
// known reason, the reason's sentence replaces the error.
func (w Texts) Finding(language, code string, values map[string]string) string {
	if code == "" {
		return ""
	}
	pairs := make([]any, 0, 2*len(values))
	for name, value := range values {
		if reason := "reason." + values["reason"]; name == "error" && w.Has(reason) {
			value = w.Text(language, reason, "error", value)
		}
		pairs = append(pairs, name, value)
	}
	return w.Text(language, "finding."+code, pairs...)
}

// fill replaces the placeholders with the values. It does not replace placeholders in a value.
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
		case !closed || !known: // it remains unchanged
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

// maxAccepted is the maximum length of Accept-Language that is read, in bytes; browsers send much less.
const maxAccepted = 1 << 10

// Preferred returns the language of a request: chosen, which is from the cookie, else the first known language of Accept-Language.
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
			q, _ = strconv.ParseFloat(value, 64) // an invalid weight is 0
		}
		if slices.Contains(Languages(), base) && q > weight {
			best, weight = base, q
		}
	}
	return best
}
