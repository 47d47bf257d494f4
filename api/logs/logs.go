package logs

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/calllog"
	"modelrelay/storage/traffic"
)

// CallReader reads the log of calls; calllog.Reader implements it.
type CallReader interface {
	Scan(ctx context.Context, filter calllog.Filter, within calllog.Range) (calllog.Page, error)
}

// TrafficReader reads sums by minute; traffic.Reader implements it.
type TrafficReader interface {
	Read(ctx context.Context, from, to time.Time) ([]traffic.Row, error)
}

// Options are the stores. The caller owns them.
type Options struct {
	// Calls is the log; nil: the deployment has none.
	Calls   CallReader
	Traffic TrafficReader
}

// List is a page of calls.
type List struct {
	Object string     `json:"object" enum:"list"`
	Data   []Call     `json:"data" nullable:"false"`
	Looked int        `json:"looked_at" doc:"Number of calls that the gateway examined for this page"`
	Back   *time.Time `json:"looked_back_to" doc:"When the last examined call was recorded; null: none"`
	After  *string    `json:"after" doc:"Value of after for the next page; null: there are no older calls. A page takes two seconds at most, so it may be short or empty if a filter matches few calls"`
	Newest *string    `json:"newest" doc:"Value of newer that selects the calls after these; null: there is no call"`
}

// Reader reads the log for operators, or for one token.
type Reader struct {
	calls CallReader
	// token is the id of the token that reads its own calls; "" for operators, who read all.
	token string
}

// All returns the reader of all calls.
func (o Options) All() Reader { return Reader{calls: o.Calls} }

// Own returns the reader of a token's own calls. It shows nothing of the deployment's channels, keys and vendors.
func (o Options) Own(tokenID string) Reader { return Reader{o.Calls, tokenID} }

type service struct {
	Options

	// enter returns the reader for the caller, and completes the filter.
	enter func(ctx context.Context, f *calllog.Filter) (Reader, error)
}

// AddOperator adds the operations over all calls. tokenID finds a token's id by its id or name.
func AddOperator(g *edge.Group, root string, o Options, tokenID func(ctx context.Context, idOrName string) (string, error)) {
	s := &service{o, func(ctx context.Context, f *calllog.Filter) (r Reader, err error) {
		f.Token, err = tokenID(ctx, f.Token)
		return o.All(), err
	}}
	const words = "The newest calls, conversations and creates of tasks (calls.recent), refused ones too, about a second after their end. " +
		"Then the history in the archive (calls.retention), in files of five minutes. The log has no content of calls."
	s.add(g, "admin", root, words, parameters(true), nil)
	s.addTraffic(g, root)
}

// AddOwn adds the operations over the calls of the caller.
func AddOwn(g *edge.Group, root, tag string, o Options) {
	s := &service{o, func(ctx context.Context, _ *calllog.Filter) (Reader, error) {
		x := edge.Of(ctx)
		return o.Own(x.Caller.ID), x.TakeReads(ScanReads)
	}}
	s.add(g, "own", root, "The token's own calls, newest first, about a second after their end.", parameters(false), []string{tag})
}

// ScanReads is how many of the token's reads a read of the log counts as: it may scan all calls of all tokens.
const ScanReads = 500

func (s *service) add(g *edge.Group, prefix, root, words string, parameters []*huma.Param, tags []string) {
	g.Handle(huma.Operation{
		OperationID: prefix + "ListCalls", Method: http.MethodGet, Path: root + "/calls", Summary: "List calls", Description: words,
		Parameters: parameters, Responses: body.DeclareTable[List](g.OpenAPI().Components.Schemas, "The calls, the newest first"), Tags: tags,
	}, s.list)
	g.Handle(huma.Operation{
		OperationID: prefix + "GetCall", Method: http.MethodGet, Path: root + "/calls/{id}", Summary: "Find a call",
		Description: "Finds a call by any of its ids: the request's, its trace's, the upstream's, or its task's. The newest of several.",
		Parameters:  []*huma.Param{edge.PathParameter("id", "Any of the call's ids")}, Tags: tags,
		Responses: body.DeclareAnswer[Call](g.OpenAPI().Components.Schemas, "The call"),
	}, s.find)
}

func (s *service) list(x *edge.Request, r *http.Request) error {
	q, table, err := ParseQuery(r)
	if err != nil {
		return err
	}
	reader, err := s.enter(r.Context(), &q.Filter)
	if err != nil {
		return err
	}
	if table {
		return reader.table(x, r, q)
	}
	list, err := reader.List(r.Context(), q)
	if err != nil {
		return err
	}
	return x.JSON(list)
}

// List returns a page of calls, the newest first. It scans the log for two seconds at most, so a page may be short.
func (r Reader) List(ctx context.Context, q Query) (List, error) {
	page, err := r.scan(ctx, q.Filter, q.Range)
	return List{
		Object: "list", Data: r.render(page), Looked: page.Looked, Back: body.OrNull(page.Back), After: body.OrNull(page.Next),
		Newest: body.OrNull(page.Newest),
	}, err
}

func (r Reader) render(page calllog.Page) []Call {
	calls := make([]Call, len(page.Calls))
	for i, call := range page.Calls {
		calls[i] = r.shown(NewCall(call))
	}
	return calls
}

func (r Reader) shown(call Call) Call {
	if r.token != "" {
		return call.Own()
	}
	return call
}

func (r Reader) scan(ctx context.Context, filter calllog.Filter, within calllog.Range) (calllog.Page, error) {
	if r.calls == nil {
		return calllog.Page{}, noLog()
	}
	if r.token != "" {
		filter.Token, filter.Channel, within.For = r.token, "", r.token
	}
	page, err := r.calls.Scan(ctx, filter, within)
	if errors.Is(err, calllog.ErrPlace) {
		field := "after"
		if within.After == "" {
			field = "newer"
		}
		return page, providers.InvalidField(field, "Invalid request: '%s' is not a cursor of this list.", field)
	}
	return page, awayFault("The log of calls", err)
}

// awayFault returns the fault for a store that does not answer; other errors stay unchanged.
func awayFault(what string, err error) error {
	if errors.Is(err, storage.ErrUnavailable) {
		return &providers.Fault{Kind: providers.Overloaded, Message: what + " does not answer at the moment.", RetryAfter: time.Second, Err: err}
	}
	return err
}

// tableFor bounds the search for the calls of a table.
const tableFor = 20 * time.Second

// table answers with CSV, page by page.
func (r Reader) table(x *edge.Request, from *http.Request, q Query) error {
	ends, left := time.Now().Add(tableFor), q.Limit
	page, err := r.scan(from.Context(), q.Filter, q.Range)
	if err != nil {
		return err
	}
	table := edge.AnswerTable(x, "calls.csv", Head())
	for {
		for _, call := range r.render(page) {
			table.Write(call.Cells())
		}
		left -= len(page.Calls)
		if err := table.End(); err != nil || page.Next == "" || left <= 0 || time.Now().After(ends) {
			return err
		}
		q.After, q.Limit = page.Next, left
		if page, err = r.scan(from.Context(), q.Filter, q.Range); err != nil {
			return err
		}
	}
}

func (s *service) find(x *edge.Request, r *http.Request) error {
	reader, err := s.enter(r.Context(), &calllog.Filter{})
	if err != nil {
		return err
	}
	call, err := reader.Find(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return x.JSON(call)
}

func noLog() error {
	return &providers.Fault{Kind: providers.NotFound, Message: "This deployment does not store a log of calls: calls.recent is 0."}
}
