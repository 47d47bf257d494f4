package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// fields are names with values, one a line.
type fields [][2]string

// printFields prints the fields that have a value.
func printFields(w io.Writer, list fields) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, field := range list {
		if field[1] != "" {
			fmt.Fprintf(tab, "%s\t%s\n", field[0], field[1])
		}
	}
	return tab.Flush()
}

// printTable prints rows below a head.
func printTable(w io.Writer, head []string, rows [][]string) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, strings.Join(head, "\t"))
	for _, row := range rows {
		fmt.Fprintln(tab, strings.Join(row, "\t"))
	}
	return tab.Flush()
}

// printJSON prints one indented document.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// count prints a number for people; "" for 0.
func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// moment prints a time for people; "" for the zero time.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}
