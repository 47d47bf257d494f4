package openai

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/calls"
	"modelrelay/api/edge"
	apitasks "modelrelay/api/tasks"
	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/storage"
	"modelrelay/storage/responses"
	"modelrelay/workflows/tasks"
)

// StoredResponses finds the stored responses of a token. Errors are those of package storage.
type StoredResponses interface {
	Find(ctx context.Context, token, id string) (responses.Response, error)
	// Items returns the output items that exist, by id. It passes their total size to room before it reads them; an error of room ends it.
	Items(ctx context.Context, token string, ids []string, room func(size int) error) (map[string][]byte, error)
	Delete(ctx context.Context, token, id string) error
}

// stored reads the responses that the gateway has stored, and requests others from their upstreams.
type stored struct {
	store      StoredResponses // nil: the gateway stores none
	calls      *calls.Calls
	background background
}

func (a adder) addStored(s *stored) {
	id := edge.PathParameter("response_id", "Id of a response")
	reads := a.group.With(edge.Access{Meter: edge.MeterReads})
	text := func(name, description string) *huma.Param { return edge.Parameter("query", name, description) }
	add := func(op huma.Operation, handle func(x *edge.Request, r *http.Request, id string) error) {
		op.Path, op.Tags, op.Description = ResponsesPath+"/{response_id}"+op.Path, []string{responsesTag}, storedWords
		op.Parameters = append([]*huma.Param{id}, op.Parameters...)
		reads.Handle(op, func(x *edge.Request, r *http.Request) error { return handle(x, r, r.PathValue("response_id")) })
	}
	add(huma.Operation{
		OperationID: "getResponse", Method: http.MethodGet, Summary: "Get a response",
		Parameters: []*huma.Param{text("stream", "True returns the events: only for an upstream's response that was created in the background")},
		Responses:  calls.DeclareAnswer("The response", true),
	}, s.get)
	add(huma.Operation{
		OperationID: "deleteResponse", Method: http.MethodDelete, Summary: "Delete a response",
		Responses: calls.DeclareAnswer("It is deleted", false),
	}, s.remove)
	add(huma.Operation{
		OperationID: "cancelResponse", Method: http.MethodPost, Path: "/cancel", Summary: "Cancel a response",
		Responses: calls.DeclareAnswer("The response", false),
	}, s.cancel)
	add(huma.Operation{
		OperationID: "listResponseInputItems", Method: http.MethodGet, Path: "/input_items", Summary: "List a response's own input",
		Parameters: []*huma.Param{
			text("after", "Id of the last item of the previous page"), text("limit", "Length of the page, 1 to 100; 20 by default"),
			text("order", "asc or desc; desc, by default, has the last item first"),
		},
		Responses: calls.DeclareAnswer("The items", false),
	}, s.inputItems)
}

const storedWords = "The gateway stores the response of a translated model for responses.retention. For a day, another response is requested from " +
	"the channel and key that made it, and the answer is that upstream's. For another token it does not exist."

// find returns a stored response of the caller; false for a response that an upstream may have.
func (s *stored) find(x *edge.Request, r *http.Request, id string) (response responses.Response, found bool, err error) {
	if s.store == nil || x.Permit(edge.RelayPermission) != nil {
		return response, false, nil //nolint:nilerr // for such a token there are no responses
	}
	response, err = s.store.Find(r.Context(), x.Caller.ID, id)
	if err != nil {
		return response, false, missing(err, id)
	}
	return response, true, takeRead(x, len(response.Object)+len(response.Earlier)+len(response.Input))
}

// takeRead counts reads of the caller for the bytes of stored responses: all tokens share Redis.
func takeRead(x *edge.Request, size int) error {
	if reads := size / apitasks.BytesPerRead; reads > 0 {
		return x.TakeReads(reads)
	}
	return nil
}

// missing returns the fault of a failed search, nil if an upstream may have the response.
func missing(err error, ids ...string) error {
	switch {
	case err == nil, errors.Is(err, storage.ErrNotFound):
		return nil
	case errors.Is(err, storage.ErrUnavailable) && !slices.ContainsFunc(ids, isOwnID):
		return nil
	case errors.Is(err, storage.ErrUnavailable):
		return &providers.Fault{
			Kind: providers.Overloaded, Message: "Stored responses cannot be read at the moment.", RetryAfter: storeRetry, Err: err,
			Accepted: providers.NotAccepted,
		}
	}
	return err
}

// storeRetry is the Retry-After while stored responses cannot be read.
const storeRetry = time.Second

// The lengths of the gateway's own ids of responses and items, after the prefix. OpenAI's are about twice as long.
const (
	responseDigits = 26
	itemDigits     = 24
)

func isOwnID(id string) bool {
	_, digits, prefixed := strings.Cut(id, "_")
	return prefixed && (len(digits) == responseDigits || len(digits) == itemDigits)
}

// serve answers for a response of the caller that is a task or stored, and relays any other to the upstream that made it, with those of the
// client's parameters that may travel there. What changes a response, or reads its events, is first for its task.
func (s *stored) serve(
	x *edge.Request, r *http.Request, request providers.StoredRequest, task func(x *edge.Request, r *http.Request, t tasks.Task) error,
	kept func(response responses.Response) error, names ...string,
) error {
	ways := []func() (bool, error){
		func() (bool, error) { return s.ofTask(x, r, request.ID, task) },
		func() (bool, error) {
			response, found, err := s.find(x, r, request.ID)
			if err == nil && found {
				err = kept(response)
			}
			return found, err
		},
	}
	if request.Do == providers.StoredInput || request.Do == providers.StoredGet && !request.Stream {
		slices.Reverse(ways) // an ended response is stored too
	}
	for _, way := range ways {
		if done, err := way(); done || err != nil {
			return err
		}
	}
	return s.calls.Stored(x, r, request, names...)
}

func (s *stored) get(x *edge.Request, r *http.Request, id string) error {
	request := providers.StoredRequest{Do: providers.StoredGet, ID: id, Stream: r.URL.Query().Get("stream") == "true"}
	return s.serve(x, r, request, s.background.get, func(response responses.Response) error {
		if request.Stream {
			return providers.InvalidField("stream", "The events of this response are not stored.")
		}
		return x.Document(response.Object)
	}, "stream", "starting_after", "include", "include_obfuscation")
}

// ofTask answers for a response that is a task; false if the caller has no such task.
func (s *stored) ofTask(
	x *edge.Request, r *http.Request, id string, answer func(*edge.Request, *http.Request, tasks.Task) error,
) (bool, error) {
	if err := x.Permit(edge.RelayPermission); err != nil {
		return false, nil //nolint:nilerr // such a token has no responses
	}
	task, found, err := s.background.tasks.Response(r.Context(), x.Caller.ID, id)
	if err != nil || !found {
		return false, err
	}
	x.Outcome.Model = task.Request.Model
	return true, answer(x, r, task)
}

func (s *stored) remove(x *edge.Request, r *http.Request, id string) error {
	deleted := func(err error) error {
		if err != nil {
			return err
		}
		return x.JSON(apitasks.Deleted{ID: id, Object: "response", Deleted: true})
	}
	request := providers.StoredRequest{Do: providers.StoredDelete, ID: id}
	return s.serve(x, r, request, func(_ *edge.Request, r *http.Request, t tasks.Task) error {
		return deleted(s.background.tasks.Delete(r.Context(), t.Token, t.ID))
	}, func(responses.Response) error {
		return deleted(missing(s.store.Delete(r.Context(), x.Caller.ID, id), id))
	})
}

func (s *stored) cancel(x *edge.Request, r *http.Request, id string) error {
	request := providers.StoredRequest{Do: providers.StoredCancel, ID: id}
	return s.serve(x, r, request, func(x *edge.Request, r *http.Request, t tasks.Task) error {
		cancelled, err := s.background.tasks.Tasks.Cancel(r.Context(), t.ID, t.Token)
		if err != nil {
			return err
		}
		return s.background.answer(x, r, cancelled)
	}, func(responses.Response) error {
		return providers.InvalidField("", "Only a response that was created with background can be cancelled.")
	})
}

// maxPage and usualPage are the maximum and the default length of a page of items.
const (
	maxPage   = 100
	usualPage = 20
)

func (s *stored) inputItems(x *edge.Request, r *http.Request, id string) error {
	request := providers.StoredRequest{Do: providers.StoredInput, ID: id}
	return s.serve(x, r, request, func(x *edge.Request, r *http.Request, t tasks.Task) error {
		request, err := s.background.tasks.Request(r.Context(), t)
		if err != nil {
			return err
		}
		return serveInput(x, r, id, ownInput(request))
	}, func(response responses.Response) error {
		return serveInput(x, r, id, response.Input)
	}, "after", "limit", "order", "include")
}

func serveInput(x *edge.Request, r *http.Request, id string, input []byte) error {
	query := edge.NewQuery(r)
	limit := query.Number("limit", usualPage, 1, maxPage)
	order := query.Text("order")
	if order != "" && order != "asc" && order != "desc" {
		query.Refuse("order", "must be asc or desc.")
	}
	items := inputItems(id, input)
	if order != "asc" {
		slices.Reverse(items)
	}
	if after := query.Text("after"); after != "" {
		at := slices.IndexFunc(items, func(item inputItem) bool { return item.id == after })
		if at < 0 {
			query.Refuse("after", "names no item of this response.")
		}
		items = items[at+1:]
	}
	if err := query.Err(); err != nil {
		return err
	}
	page := inputPage{Object: "list", Data: make([]json.RawMessage, 0, limit), HasMore: len(items) > limit}
	for _, item := range items[:min(limit, len(items))] {
		page.Data = append(page.Data, item.json)
		page.LastID = &item.id
	}
	if len(items) > 0 {
		page.FirstID = &items[0].id
	}
	return x.JSON(page)
}

type inputPage struct {
	Object  string            `json:"object"`
	Data    []json.RawMessage `json:"data"`
	FirstID *string           `json:"first_id"`
	LastID  *string           `json:"last_id"`
	HasMore bool              `json:"has_more"`
}

type inputItem struct {
	id   string
	json []byte
}

// inputItems returns the items of a response's own input, with type and id. A missing id is derived from the response's id and the index.
func inputItems(response string, input []byte) (items []inputItem) {
	for i, item := range list(input).Items() {
		id, kind := item.Get("id").Text().String(), item.Get("type").Text()
		if kind == nil {
			kind = rawjson.Text(`"message"`)
		}
		if id == "" {
			sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", response, i))
			id = "item_" + hex.EncodeToString(sum[:itemDigits/2])
			if kind.Is("message") {
				id = strings.Replace(id, "item_", "msg_", 1)
			}
		}
		out := body.AppendMember(nil, []byte(`"id"`), rawjson.Quote(id))
		out = body.AppendMember(out, []byte(`"type"`), kind)
		for name, value := range item.Members() {
			switch {
			case name.Is("id"), name.Is("type"):
				continue
			case name.Is("content") && value.IsText() && kind.Is("message"):
				part := `[{"type":"input_text","text":`
				if item.Get("role").Text().Is("assistant") {
					part = `[{"type":"output_text","annotations":[],"text":`
				}
				value = slices.Concat([]byte(part), value, []byte("}]"))
			}
			out = body.AppendMember(out, name, value)
		}
		items = append(items, inputItem{id, append(out, '}')})
	}
	return items
}

func list(items []byte) rawjson.Value { return slices.Concat([]byte("["), items, []byte("]")) }

func (s *stored) names(b *body.JSON) bool {
	if s.store == nil {
		return false
	}
	return b.Text("previous_response_id") != "" || !eachReference(b.Value("input"), func(rawjson.Value, []byte) bool { return false })
}

// resolve replaces a call's references to the caller's stored responses by their items, and returns the new body; nil if there are none. It
// keeps unknown references, because an upstream may have the response. input returns the input with only its references replaced; nil if
// there are none.
func (s *stored) resolve(
	x *edge.Request, r *http.Request, b *body.JSON,
) (raw []byte, chain providers.Chain, input func() []byte, err error) {
	edits, err := s.references(x, r, b)
	if err != nil {
		return nil, chain, nil, err
	}
	links := slices.Clip(edits)
	if edits != nil {
		own := providers.Call{Content: providers.Content{Body: b.Raw, Edits: links}}
		input = func() []byte { return rawjson.Trim(slices.Concat(own.Payload("")...)).Get("input") }
	}
	if previous := b.Text("previous_response_id"); previous != "" {
		earlier, made, found, err := s.earlier(x, r, previous)
		if err != nil {
			return nil, chain, nil, err
		}
		if found {
			if len(earlier) <= responses.MaxSize {
				calls.KeepEarlier(r.Context(), earlier)
			}
			chain = providers.Chain{Previous: previous, Earlier: list(earlier).Len(), Items: earlier}
			if chain.Upstream, chain.By = made.ID, made.By; made.ID != "" {
				links = append(links, providers.Edit{At: b.Span("previous_response_id"), Text: rawjson.Quote(made.ID)})
				linked := calls.JSONCall(providers.Endpoint{}, b).Content
				linked.Edits = links
				chain.Linked = &linked
			}
			edits = append(edits, providers.Edit{At: b.Span("previous_response_id"), Text: []byte("null")})
			edits = append(edits, prepend(b, earlier)...)
		}
	}
	if edits == nil {
		return nil, chain, nil, nil
	}
	call := providers.Call{Content: providers.Content{Body: b.Raw, Edits: edits}}
	pieces := call.Payload("")
	if err := x.FitBody(int(pieces.Len())); err != nil {
		return nil, chain, nil, err
	}
	return slices.Concat(pieces...), chain, input, nil
}

// earlier returns the items of a response of the caller from which a call continues, and its upstream's id. It prefers those of the create,
// if any.
func (s *stored) earlier(x *edge.Request, r *http.Request, previous string) (items []byte, made providers.Created, found bool, err error) {
	staged, items, err := calls.StagedChain(r.Context(), previous, x.Hold)
	if staged != nil || err != nil {
		if err == nil && staged.Upstream != "" {
			made = providers.Created{ID: staged.Upstream, By: providers.KeyRef{Channel: staged.Channel, Fingerprint: staged.Key}}
		}
		return items, made, err == nil, err
	}
	response, made, found, err := s.previous(x, r, previous)
	if err != nil || !found {
		return nil, made, false, err
	}
	return earlierItems(response), made, true, nil
}

// references returns the edits that replace references in the input by stored items.
func (s *stored) references(x *edge.Request, r *http.Request, b *body.JSON) (edits []providers.Edit, err error) {
	var ids []string
	var at []providers.Span
	named := eachReference(b.Value("input"), func(item rawjson.Value, id []byte) bool {
		ids, at = append(ids, string(id)), append(at, b.SpanOf(item))
		return len(ids) <= maxNamed
	})
	if !named {
		return nil, tooManyNamed("input")
	}
	if len(ids) == 0 {
		return nil, nil
	}
	distinct := slices.Clone(ids)
	slices.Sort(distinct)
	distinct = slices.Compact(distinct)
	items, err := s.store.Items(r.Context(), x.Caller.ID, distinct, func(size int) error {
		if err := takeRead(x, size); err != nil {
			return err
		}
		return x.Hold(size)
	})
	if err = missing(err, distinct...); err != nil {
		return nil, err
	}
	for i, id := range ids {
		if item := items[id]; item != nil {
			edits = append(edits, providers.Edit{At: at[i], Text: item})
		}
	}
	return edits, nil
}

// earlierItems returns a response's whole input and its output: items separated by commas.
func earlierItems(response responses.Response) []byte {
	output := rawjson.Trim(response.Object).Get("output")
	if output.IsArray() {
		output = bytes.TrimSpace(output[1 : len(output)-1])
	}
	parts := slices.DeleteFunc([][]byte{response.Earlier, response.Input, output}, func(part []byte) bool { return len(part) == 0 })
	return bytes.Join(parts, []byte(","))
}

// prepend returns the edits that insert items at the beginning of a call's input.
func prepend(b *body.JSON, items []byte) []providers.Edit {
	input, at := b.Value("input"), b.Span("input")
	switch {
	case len(items) == 0:
		return nil
	case input.IsText():
		return []providers.Edit{
			{
				At:   providers.Span{From: at.From, To: at.From + 1},
				Text: slices.Concat([]byte("["), items, []byte(`,{"type":"message","role":"user","content":"`)),
			},
			{At: providers.Span{From: at.To - 1, To: at.To}, Text: []byte(`"}]`)},
		}
	case input.IsArray():
		begin := slices.Concat([]byte("["), items)
		if input.IsSet() { // the input has items
			begin = append(begin, ',')
		}
		return []providers.Edit{{At: providers.Span{From: at.From, To: at.From + 1}, Text: begin}}
	case at != providers.Span{}:
		return []providers.Edit{{At: at, Text: list(items)}}
	}
	return []providers.Edit{body.InsertMember(b.Raw, 0, `"input":`+string(list(items)))}
}
