package console

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"time"

	"modelrelay/api/edge"
)

// Table is a table of a page: cards on narrow screens, and the same rows as CSV. The template is "table".
type Table struct {
	// ID is the element's id, unique in the page. Caption is a key.
	ID, Caption string
	Columns     []Column
	Rows        []Row
	// Empty is the key of the text for a list without rows. A filter without results has another text.
	Empty string
	// Next is the address of the next rows, "" at the end. Partly: the search stopped before the page was full, and continues there.
	Next   string
	Partly bool
	// CSV: the page has a csv function.
	CSV bool
	// Select adds a box with this name and the row's ID to each row, for the surrounding form.
	Select string
}

func (t *Table) drop(words ...string) {
	for at, column := range slices.Backward(t.Columns) {
		if !slices.Contains(words, column.Word) {
			continue
		}
		t.Columns = slices.Delete(t.Columns, at, at+1)
		for i := range t.Rows {
			t.Rows[i].Cells = slices.Delete(t.Rows[i].Cells, at, at+1)
		}
	}
}

// Column is one column. Word is the key of its heading, and of its name in a card.
type Column struct {
	Word string
	// Number aligns the values to the right, with digits of equal width.
	Number bool
	// Sort is the value of "sort" that orders by the column, "" if none does.
	Sort string
}

// columns returns the columns with these keys. A key with the prefix # is a column of numbers.
func columns(words ...string) []Column {
	list := make([]Column, len(words))
	for i, word := range words {
		list[i].Word, list[i].Number = strings.CutPrefix(word, "#")
	}
	return list
}

// Row is one row. Its first cell is its heading.
type Row struct {
	ID    string
	Cells []Cell
}

// Cell is one value: a text, a time, a mark, or several of them.
type Cell struct {
	Text string
	// Word is the key of a text, instead of Text.
	Word string
	// Link is an address; see View.To.
	Link string
	// Mark is one of: working probing warning paused failed done running waiting.
	Mark string
	// Time is shown in the reader's time zone; the zero time is a dash.
	Time time.Time
	// Code is shown in a monospaced font.
	Code bool
	// Note is a smaller line below.
	Note string
	// Bar is a share from 0 to 1 that is drawn; nil for none.
	Bar *float64
}

// add adds a row. A cell is a Cell, a text, a number, or a time; a zero time is a dash.
func (t *Table) add(id string, cells ...any) {
	row := Row{ID: id, Cells: make([]Cell, len(cells))}
	for i, cell := range cells {
		switch cell := cell.(type) {
		case Cell:
			row.Cells[i] = cell
		case string:
			row.Cells[i].Text = cell
		case time.Time:
			row.Cells[i].Time = cell
		case *time.Time:
			if cell != nil {
				row.Cells[i].Time = *cell
			}
		default:
			row.Cells[i].Text = number(cell)
		}
	}
	t.Rows = append(t.Rows, row)
}

// Share returns the quotient of two numbers for Cell.Bar, nil if whole is not positive.
func Share(of, whole float64) *float64 {
	if whole <= 0 {
		return nil
	}
	share := max(0, min(1, of/whole))
	return &share
}

// Blank reports whether the cell is only a dash. A card omits it.
func (c Cell) Blank() bool { return c.Dash() && c.Mark == "" && c.Note == "" && c.Bar == nil }

// mostShort is the maximum length of a text that is shown in one line, in bytes.
const mostShort = 16

// Short reports whether the text is shown in one line, such as the hint of a key.
func (c Cell) Short() bool { return len(c.Text) <= mostShort }

// InLine reports whether the mark and the text are shown in one line: the text is short, or a word.
func (c Cell) InLine() bool { return c.Link == "" && (c.Word != "" || c.Text != "" && c.Short()) }

// Width returns the length of the cell's bar, out of 100.
func (c Cell) Width() int { return int(*c.Bar * 100) }

// Dash reports whether the cell is empty.
func (c Cell) Dash() bool { return c.Text == "" && c.Word == "" && c.Time.IsZero() }

func (c Cell) plain(v *View) string {
	switch {
	case !c.Time.IsZero():
		return c.Time.UTC().Format(time.RFC3339)
	case c.Word != "":
		return v.T(c.Word)
	default:
		return strings.ReplaceAll(c.Text, "\n", "; ")
	}
}

// answerCSV answers with the page's rows.
func (s *Server) answerCSV(v *View, name string, table *Table) {
	var out bytes.Buffer
	head := make([]string, len(table.Columns))
	for i, column := range table.Columns {
		head[i] = v.T(column.Word)
	}
	lines := edge.NewTable(&out, head)
	for _, row := range table.Rows {
		line := make([]string, len(row.Cells))
		for i, cell := range row.Cells {
			line[i] = cell.plain(v)
		}
		lines.Write(line)
	}
	_ = lines.Flush() // into memory
	h := v.W.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="`+name+`.csv"`)
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	v.W.WriteHeader(http.StatusOK)
	_, _ = v.W.Write(out.Bytes())
}
