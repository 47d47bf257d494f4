package console

import (
	"cmp"
	"slices"
)

// mostChosen is the maximum number of objects that one form changes.
const mostChosen = 100

// bulk is an act on the checked rows of a page's table.
type bulk struct {
	// box is the name of the rows' boxes. column is the key of the heading of the objects in the results.
	box, column string
	// page is the page of one object, "" for none. names returns the names of objects by id; nil: they have none.
	page  string
	names func(ids []string) map[string]string
	// ask returns the question before the act, and end performs the act for one object.
	ask func(ids []string) (question, error)
	end func(id string) error
}

// question asks for confirmation before an act on several objects. The template is "ask".
type question struct {
	// Text is the question, What describes the consequences, "" for none. Yes is the text of the button.
	Text, What, Yes string
	// Rows show the objects instead of their names.
	Rows *Table
	// Reason: the act requires a reason. Hidden are further values of the form.
	Reason bool
	Hidden map[string]string

	// The act, the name of the boxes, and the ids and names of the objects are those of the form.
	Do, Box    string
	IDs, Names []string
}

// several performs a form's act on the checked rows. Without a confirmation, the page asks for it; with one, it shows the outcomes.
func (v *View) several(b bulk) (to string, data any, err error) {
	ids := slices.Compact(slices.Sorted(slices.Values(v.Form.Values(b.box))))
	switch {
	case len(ids) == 0:
		return "", nil, invalid("", v.T("bulk.none"))
	case len(ids) > mostChosen:
		return "", nil, invalid("", v.T("bulk.many", "n", mostChosen))
	}
	var names map[string]string
	if b.names != nil {
		names = b.names(ids)
	}
	if v.Form.Value("sure") == "" {
		ask, err := b.ask(ids)
		if err != nil {
			return "", nil, err
		}
		ask.Do, ask.Box, ask.IDs = v.Form.Value("do"), b.box, ids
		for _, id := range ids {
			ask.Names = append(ask.Names, cmp.Or(names[id], id))
		}
		v.Ask = &ask
		return "", nil, nil
	}
	v.Results = &Table{ID: "results", Caption: "bulk.results", Columns: columns(b.column, "bulk.result")}
	var away error // after a failed call of a service, the other objects do not call it
	for _, id := range ids {
		object, result, err := Cell{Text: names[id]}, Cell{Word: "bulk.done", Mark: "done"}, away
		if object.Text == "" {
			object.Text, object.Code = id, true
		}
		if b.page != "" {
			object.Link = v.To(b.page, id)
		}
		if err == nil {
			err = b.end(id)
		}
		if problem := v.problem(err); problem != nil && problem.Away() {
			away = err
		}
		if err != nil {
			result = Cell{Text: message(err), Mark: "failed"}
		}
		v.Results.add(id, object, result)
	}
	return "", nil, nil
}
