package tokens

import "context"

// PageLooks bounds how many tokens one page looks at, however few of them it wants: reading so many takes some tens of
// milliseconds.
const PageLooks = 5_000

// PageQuery asks for a page of tokens by name.
type PageQuery struct {
	// After is the Next of the page before, "" for the first.
	After string
	// Limit is the length of the page, at least 1.
	Limit int
	// Wanted chooses tokens; nil: all.
	Wanted func(*Token) bool
}

// Page is a part of the list of all tokens.
type Page struct {
	Tokens []Token
	// Next is where the list goes on, "" at the end. A page may have fewer tokens than were asked for and go on: it looks at
	// PageLooks tokens at most.
	Next string
}

// Page reads tokens by name, revoked ones too. What it costs depends on the page and not on how many tokens there are.
func (t *Store) Page(ctx context.Context, q PageQuery) (Page, error) { return t.names.page(ctx, q) }

// Count is how many tokens Redis holds, revoked ones too.
func (t *Store) Count(ctx context.Context) (int64, error) { return t.records.count(ctx) }
