package edge

import (
	"encoding/csv"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/providers"
)

// Query reads the parameters of a list whose input huma does not decode. It continues after an invalid one; Err returns the first fault.
type Query struct {
	values url.Values
	header http.Header
	err    error
}

// NewQuery returns the Query of a request.
func NewQuery(r *http.Request) *Query { return &Query{values: r.URL.Query(), header: r.Header} }

// Refuse records that a parameter is invalid. what is a sentence without its subject, the parameter.
func (q *Query) Refuse(name, what string, args ...any) {
	if q.err == nil {
		q.err = providers.InvalidField(name, "Invalid request: '"+name+"' "+what, args...)
	}
}

// Err returns a *providers.Fault that names the first invalid parameter; nil if all are valid.
func (q *Query) Err() error { return q.err }

// Text returns a parameter unchanged, "" if it is absent.
func (q *Query) Text(name string) string { return q.values.Get(name) }

// Moment returns a parameter with a date or a time of RFC 3339; zero if it is absent.
func (q *Query) Moment(name string) time.Time {
	at, err := Moment(name, q.Text(name))
	if q.err == nil {
		q.err = err
	}
	return at
}

// Number returns a whole number from least to most, or the default if it is absent.
func (q *Query) Number(name string, standard, least, most int) int {
	text := q.Text(name)
	if text == "" {
		return standard
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		q.Refuse(name, "must be a whole number from %d to %d.", least, most)
	}
	return n
}

// Words returns a comma-separated list of known words, each once, or the default if the parameter is absent.
func (q *Query) Words(name string, known, standard []string) []string {
	given, present := q.values[name]
	if !present {
		return standard
	}
	words, wrong := Words(strings.Join(given, ","), known)
	if wrong {
		q.Refuse(name, "takes %s.", strings.Join(known, ", "))
	}
	return words
}

// TableParameters declares the query of a list that is also available as a table: its parameters, and the one that CSV reads.
func TableParameters(list ...*huma.Param) []*huma.Param {
	list = append(list, &huma.Param{
		Name: "format", Description: "The header Accept: text/csv also selects csv",
		Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"json", "csv"}},
	})
	for _, p := range list {
		p.In = "query"
	}
	return list
}

// CSV reports whether the client requests CSV: by the parameter format, else by the header Accept.
func (q *Query) CSV() bool {
	switch q.Text("format") {
	case "":
		return HeaderLists(q.header, "Accept", "text/csv")
	case "json":
		return false
	case "csv":
		return true
	}
	q.Refuse("format", "takes json or csv.")
	return false
}

// Moment parses a date or a time of RFC 3339; "" is the zero time. The error is a *providers.Fault that names the parameter.
func Moment(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil && !t.IsZero() { // the zero time means absent
			return t.UTC(), nil
		}
	}
	return time.Time{}, providers.InvalidField(name, "Invalid request: '%s' is neither a date such as 2026-01-31 nor a time of RFC 3339.",
		name)
}

// Words returns the words of a text that commas or spaces separate, each once. wrong: a word is unknown.
func Words(text string, known []string) (words []string, wrong bool) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		if !slices.Contains(known, word) {
			return words, true
		}
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words, false
}

// Table writes CSV. Flush returns the error of a failed write.
type Table struct{ rows *csv.Writer }

// NewTable writes the names of the columns and returns the table.
func NewTable(w io.Writer, head []string) Table {
	t := Table{csv.NewWriter(w)}
	t.Write(head)
	return t
}

// AnswerTable begins an answer that is a table of any length. file is its name for browsers that save it, "" for none.
func AnswerTable(x *Request, file string, head []string) Table {
	x.Header().Set("Content-Type", "text/csv; charset=utf-8; header=present")
	if file != "" {
		x.Header().Set("Content-Disposition", `attachment; filename="`+file+`"`)
	}
	return NewTable(x.Paced(), head)
}

// Write adds a row. Spreadsheets execute a text that begins like a formula, and clients choose names: such a text gets a leading
// apostrophe, which spreadsheets hide. Numbers stay unchanged.
func (t Table) Write(cells []string) {
	plain := make([]string, len(cells))
	for i, cell := range cells {
		if _, err := strconv.ParseFloat(cell, 64); err != nil && cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
			cell = "'" + cell
		}
		plain[i] = cell
	}
	_ = t.rows.Write(plain) // Flush returns its error
}

// Flush sends the written rows.
func (t Table) Flush() error {
	t.rows.Flush()
	return t.rows.Error()
}

// End is Flush for the answer of a request: if the client disconnected, the error is ClientGone.
func (t Table) End() error {
	if err := t.Flush(); err != nil {
		return ClientGone(err)
	}
	return nil
}
