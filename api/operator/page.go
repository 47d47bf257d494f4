package operator

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"modelrelay/api/edge"
	"modelrelay/providers"
)

// The default and the maximum length of a page.
const (
	DefaultPage = 50
	MostPage    = 500
)

// PageOf selects a page of a list. A limit of 0 is the default.
type PageOf struct {
	After string `query:"after" json:"after,omitempty" doc:"The cursor of the previous page"`
	Limit int    `query:"limit" json:"limit,omitempty" minimum:"1" maximum:"500" default:"50" doc:"Length of the page"`
}

func (p PageOf) limit() int { return cmp.Or(p.Limit, DefaultPage) }

// NamesOf selects a page of a list by name.
type NamesOf struct {
	Q     string   `query:"q" json:"q,omitempty" maxLength:"128" doc:"Only objects whose name contains this text, in any case"`
	Names []string `query:"name,explode" json:"name,omitempty" maxItems:"100" doc:"Only the existing objects with these names; other filters have no effect"`
	After string   `query:"after" json:"after,omitempty" doc:"The cursor of the previous page"`
	Limit int      `query:"limit" json:"limit,omitempty" minimum:"1" maximum:"500" default:"100" doc:"Length of the page"`
}

const defaultNames = 100

// Page returns the page of the sorted names, and the cursor of the next page, nil at the end. A name that equals Q comes first.
func (q *NamesOf) Page(names []string) (page []string, next *string, err error) {
	cursor, err := PageOf{After: q.After}.cursor("q", q.Q)
	if err != nil {
		return nil, nil, err
	}
	has := func(name string) bool {
		_, known := slices.BinarySearch(names, name)
		return known
	}
	if len(q.Names) > 0 {
		return slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(q.Names))), func(name string) bool { return !has(name) }), nil, nil
	}
	limit, exact := cmp.Or(q.Limit, defaultNames), q.Q != "" && has(q.Q)
	if exact && len(cursor) == 0 {
		page, limit = append(page, q.Q), max(limit, 2)
	}
	at, last := slices.BinarySearch(names, string(cursor))
	if last {
		at++
	}
	part := strings.ToLower(q.Q)
	for _, name := range names[at:] {
		switch {
		case !strings.Contains(strings.ToLower(name), part), exact && name == q.Q:
		case len(page) == limit:
			return page, after([]byte(page[len(page)-1])), nil
		default:
			page = append(page, name)
		}
	}
	return page, nil, nil
}

// FindNames returns a page of names of channels or models, and whether there are more. all has all names. It reads no states.
func (s *Service) FindNames(by Actor, in *NamesOf, all []string) (names []string, more bool, err error) {
	if err := reads(by, in); err != nil {
		return nil, false, err
	}
	names, next, err := in.Page(all)
	return names, next != nil, err
}

// cursor returns the beginning of the page, empty for the first page. filters are names and values of the other parameters.
func (p PageOf) cursor(filters ...string) ([]byte, error) {
	if err := plainFilters(filters...); err != nil {
		return nil, err
	}
	cursor, ok := readCursor(p.After)
	if !ok {
		return nil, noCursor()
	}
	return cursor, nil
}

func noCursor() error {
	return providers.InvalidField("after", "Invalid request: 'after' is not a cursor of this list.")
}

func span(sinceText, untilText string) (since, until time.Time, err error) {
	if since, err = edge.Moment("since", sinceText); err != nil {
		return since, until, err
	}
	if until, err = edge.Moment("until", untilText); err == nil && !until.IsZero() && !since.Before(until) {
		err = providers.InvalidField("until", "Invalid request: 'until' must be after 'since'.")
	}
	return since, until, err
}

// after returns the cursor of the next page for clients, nil at the end.
func after(next []byte) *string {
	if len(next) == 0 {
		return nil
	}
	return new(writeCursor(next))
}

// writeCursor encodes a cursor with a checksum as its prefix: each store handles an invalid cursor differently.
func writeCursor(cursor []byte) string {
	return base64.RawURLEncoding.EncodeToString(append(checksum(cursor), cursor...))
}

// readCursor decodes a cursor; "" is the empty one.
func readCursor(text string) (cursor []byte, ok bool) {
	if text == "" {
		return nil, true
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) <= crc32.Size || !bytes.Equal(raw[:crc32.Size], checksum(raw[crc32.Size:])) {
		return nil, false
	}
	return raw[crc32.Size:], true
}

func checksum(cursor []byte) []byte {
	return binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(cursor))
}

// plainFilters refuses filters, given as names and values, that can match no name and are not valid in a query.
func plainFilters(pairs ...string) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		if !providers.Plain(pairs[i+1]) {
			return providers.InvalidField(pairs[i], "Invalid request: '%s' contains a control character.", pairs[i])
		}
	}
	return nil
}
