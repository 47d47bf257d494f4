package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/ledger"
	"modelrelay/storage/tokens"
)

// sortedTokens is the maximum number of tokens for which a list is sorted by anything but names: each page reads all of them.
const sortedTokens = 10_000

// partOfID is the minimum length of a text that is searched in ids and hints, because shorter texts match random letters.
const partOfID = 4

const (
	sortByName = "name"
	bySpent    = "spent"
	byLastUsed = "last_used"
	byExpiry   = "expires"
	byAge      = "created_at"
)

// TokenList is a page of tokens.
type TokenList struct {
	Object string  `json:"object" enum:"list"`
	Data   []Token `json:"data" nullable:"false"`
	After  *string `json:"after" doc:"Value of after for the next page, which may be empty; null at the end"`
}

// TokenQuery selects tokens.
type TokenQuery struct {
	Q      string   `query:"q" json:"q,omitempty" maxLength:"128" placeholder:"TEXT" doc:"Tokens whose name contains this text, in any case; from four characters on, also tokens whose id or hint contains it"`
	Group  string   `query:"group" json:"group,omitempty" placeholder:"NAME" doc:"Tokens of this group"`
	IDs    []string `kong:"-" query:"id,explode" json:"id,omitempty" maxItems:"100" doc:"Only these tokens, by id or name, in this order: unknown tokens are omitted, and other filters have no effect"`
	State  string   `query:"state" json:"state,omitempty" enum:"active,disabled,expired,revoked" default:"" doc:"Tokens in this state"`
	Sort   string   `query:"sort" json:"sort,omitempty" enum:"name,spent,last_used,expires,created_at" default:"name" doc:"name: by name; spent, last_used, created_at: the highest or latest first; expires: the next to expire first, tokens without expiry last. Above 10,000 tokens only name is possible"`
	PageOf `kong:"-"`
}

func (q *TokenQuery) filter(now time.Time) func(*tokens.Token) bool {
	part := strings.ToLower(q.Q)
	return func(t *tokens.Token) bool {
		return q.selects(t, now) &&
			(strings.Contains(strings.ToLower(t.Name), part) ||
				len(part) >= partOfID && (strings.Contains(strings.ToLower(t.ID), part) || strings.Contains(strings.ToLower(t.Hint), part)))
	}
}

func (q *TokenQuery) selects(t *tokens.Token, now time.Time) bool {
	return (q.Group == "" || t.Group == q.Group) && (q.State == "" || t.State(now) == q.State)
}

// byName reads a page in the order of names. A token with the searched text as name or id comes first: a search reads a bounded number of
// tokens, which may not include it.
func (s *Service) byName(ctx context.Context, in *TokenQuery, cursor []byte, now time.Time) (found []tokens.Token, next []byte, err error) {
	filter, limit := in.filter(now), in.limit()
	if in.Q != "" {
		exact, err := s.Tokens.Find(ctx, in.Q)
		switch {
		case errors.Is(err, storage.ErrNotFound):
		case err != nil:
			return nil, nil, err
		default:
			if len(cursor) == 0 && in.selects(&exact, now) {
				found = append(found, exact)
			}
			others := filter
			filter = func(t *tokens.Token) bool { return t.ID != exact.ID && others(t) }
		}
	}
	if len(found) == limit { // the page has length one
		limit++
	}
	page, err := s.Tokens.Page(ctx, tokens.PageQuery{After: string(cursor), Limit: limit - len(found), Wanted: filter})
	return append(found, page.Tokens...), []byte(page.Next), err
}

func (s *Service) these(ctx context.Context, ids []string) (found []tokens.Token, err error) {
	for _, id := range ids {
		token, err := s.Tokens.Find(ctx, id)
		switch {
		case errors.Is(err, storage.ErrNotFound):
		case err != nil:
			return nil, err
		default:
			found = append(found, token)
		}
	}
	return found, nil
}

// ListTokens returns a page of tokens, also of revoked ones, by name unless the query has another order.
func (s *Service) ListTokens(ctx context.Context, by Actor, in *TokenQuery) (list TokenList, err error) {
	if err := reads(by, in); err != nil {
		return list, err
	}
	cursor, err := in.cursor("group", in.Group, "q", in.Q)
	if err != nil {
		return list, err
	}
	now := time.Now()
	var found []tokens.Token
	var next []byte
	switch {
	case len(in.IDs) > 0:
		found, err = s.these(ctx, in.IDs)
	case in.Sort == sortByName || in.Sort == "":
		found, next, err = s.byName(ctx, in, cursor, now)
	default:
		found, next, err = s.sorted(ctx, in, cursor, now)
	}
	if err != nil {
		return list, StoreFault("token", "", err)
	}
	list = TokenList{Object: "list", Data: make([]Token, len(found)), After: after(next)}
	groups := s.Groups()
	for i, token := range found {
		list.Data[i] = groups[token.Group].shown(token, now)
	}
	return list, StoreFault("token", "", s.complete(ctx, by, list.Data))
}

// place is the position of a token in an order: ascending by value, then by id.
type place struct {
	Sort  string `json:"sort"`
	Value int64  `json:"value"`
	ID    string `json:"id"`
}

func (p place) compare(other place) int {
	return cmp.Or(cmp.Compare(p.Value, other.Value), cmp.Compare(p.ID, other.ID))
}

// SortsTokens reports whether ListTokens can sort by anything but names: only up to sortedTokens tokens.
func (s *Service) SortsTokens(ctx context.Context, by Actor) (bool, error) {
	if err := reads(by, nil); err != nil {
		return false, err
	}
	count, err := s.Tokens.Count(ctx)
	return count <= sortedTokens, StoreFault("token", "", err)
}

// sorted returns a page in another order than by names, and the next cursor. It reads all selected tokens.
func (s *Service) sorted(ctx context.Context, in *TokenQuery, cursor []byte, now time.Time) (page []tokens.Token, next []byte, err error) {
	var last *place
	if len(cursor) > 0 {
		last = new(place)
		if json.Unmarshal(cursor, last) != nil || last.Sort != in.Sort {
			return nil, nil, noCursor()
		}
	}
	count, err := s.Tokens.Count(ctx)
	if err != nil {
		return nil, nil, err
	}
	if count > sortedTokens {
		return nil, nil, providers.InvalidField("sort",
			"Invalid request: there are %d tokens, and more than %d can only be sorted by name; 'q', 'group' and 'state' narrow that list.", count,
			sortedTokens)
	}
	var all []tokens.Token
	for from := ""; ; {
		part, err := s.Tokens.Page(ctx, tokens.PageQuery{After: from, Limit: sortedTokens, Wanted: in.filter(now)})
		if err != nil {
			return nil, nil, err
		}
		all = append(all, part.Tokens...)
		if from = part.Next; from == "" || len(all) > sortedTokens {
			break
		}
	}
	places, err := s.places(ctx, in.Sort, all)
	if err != nil {
		return nil, nil, err
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return places[a].compare(places[b]) })
	for _, i := range order {
		switch {
		case last != nil && places[i].compare(*last) <= 0:
		case len(page) == in.limit():
			return page, next, nil
		default:
			page = append(page, all[i])
			next, _ = json.Marshal(places[i]) // a number and two strings always marshal
		}
	}
	return page, nil, nil
}

// never is after every time.
const never = int64(1) << 62

func (s *Service) places(ctx context.Context, sort string, all []tokens.Token) ([]place, error) {
	ids := make([]string, len(all))
	for i, token := range all {
		ids[i] = token.ID
	}
	var spent map[string]ledger.Balance
	var used map[string]time.Time
	var err error
	switch sort {
	case bySpent:
		spent, err = s.Money.Balances(ctx, ids)
	case byLastUsed:
		used, err = s.Money.LastUsed(ctx, ids)
	}
	places := make([]place, len(all))
	for i, token := range all {
		at := &places[i]
		at.Sort, at.ID = sort, token.ID
		switch sort {
		case bySpent:
			at.Value = -spent[token.ID].Spent
		case byLastUsed:
			at.Value = -used[token.ID].Unix()
		case byAge:
			at.Value = -token.CreatedAt.Unix()
		case byExpiry:
			if at.Value = never; !token.Expires.IsZero() {
				at.Value = token.Expires.Unix()
			}
		}
	}
	return places, err
}
