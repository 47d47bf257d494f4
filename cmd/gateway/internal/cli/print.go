package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"modelrelay/api/edge"
	"modelrelay/providers"
)

type fields [][2]string

// printFields prints the fields that have a value.
func printFields(w io.Writer, list fields) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, field := range list {
		if field[1] != "" {
			fmt.Fprintf(tab, "%s\t%s\n", field[0], providers.Shown(field[1]))
		}
	}
	return tab.Flush()
}

func printTable(w io.Writer, head []string, rows [][]string) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, strings.Join(head, "\t"))
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = providers.Shown(cell)
		}
		fmt.Fprintln(tab, strings.Join(cells, "\t"))
	}
	return tab.Flush()
}

// show prints a document: with --json unchanged, else with people.
func (p *Program) show(document any, people func() error) error {
	if p.JSON {
		return printJSON(p.Stdout, document)
	}
	return people()
}

// sentence prints a document with --json, else a sentence.
func (p *Program) sentence(document any, format string, args ...any) error {
	return p.show(document, func() error {
		_, err := fmt.Fprintf(p.Stdout, format, args...)
		return err
	})
}

// showFields prints a document with --json, else its fields.
func (p *Program) showFields(document any, list fields) error {
	return p.show(document, func() error { return printFields(p.Stdout, list) })
}

// printList prints a list: with --json unchanged, else as rows of a table.
func printList[T any](p *Program, list []T, head []string, row func(T) []string) error {
	return p.show(list, func() error { return printTable(p.Stdout, head, rowsOf(list, row)) })
}

func rowsOf[T any](list []T, row func(T) []string) [][]string {
	rows := make([][]string, len(list))
	for i, one := range list {
		rows[i] = row(one)
	}
	return rows
}

func printCSV[T any](w io.Writer, head []string, list []T, cells func(T) []string) error {
	table := edge.NewTable(w, head)
	for _, one := range list {
		table.Write(cells(one))
	}
	return table.Flush()
}

func printJSON(w io.Writer, v any) error { return writeJSON(w, v, "  ") }

// writeJSON writes a document and a line feed. It escapes control characters of a terminal.
func writeJSON(w io.Writer, v any, indent string) error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escapeJSON(out.Bytes()))
	return err
}

// escapeJSON replaces the characters of a document that are not plain, except line ends, by JSON escapes.
func escapeJSON(document []byte) []byte {
	out := make([]byte, 0, len(document))
	for _, r := range string(document) {
		switch {
		case r == '\n' || unicode.IsGraphic(r):
			out = utf8.AppendRune(out, r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// count formats a number; "" for 0.
func count[N int | int64](n N) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

// Counted formats a number of things. thing is in the singular: 1 token, 2 tokens.
func Counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if stem, found := strings.CutSuffix(thing, "s"); found { // such as process
		thing = stem + "se"
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// moment formats a time; "" for the zero time.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}
