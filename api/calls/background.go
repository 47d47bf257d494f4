package calls

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/activities"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/workflows/tasks"
)

// Background starts the tasks of background calls.
type Background interface {
	// Start creates the task and answers the client.
	Start(x *edge.Request, r *http.Request, create BackgroundCall) error
}

// BackgroundCall is a call that a client requests in the background. It is checked like a synchronous call.
type BackgroundCall struct {
	// Request has the body as its first input, and the items of Call.Chain as a second one.
	Request providers.VideoRequest
	// Call lacks the object of the body.
	Call *tasks.CallCreate
	// Started is called after the task is created, and before the client waits for it.
	Started func()
	// Wait is how long the client waits for the end of the task. Waits: it requested a wait.
	Wait  time.Duration
	Waits bool
	// Answer answers the client in its format; nil: as Prefer requests.
	Answer func(x *edge.Request, r *http.Request, started tasks.Task, body []byte) error
	// Refusal is the fault if the create would make a new task; nil: none. A repeat of an earlier create still finds its task.
	Refusal error
}

// maxWait bounds the wait of a create. Common proxies close silent connections after 100 s.
const maxWait = 60 * time.Second

// maxMetadata bounds the metadata in a task, in bytes, because a list has those of a hundred tasks. It is OpenAI's bound of metadata, 16
// pairs of 64 and 512 characters, with room for escapes.
const maxMetadata = 16 << 10

// background starts the task of a call that its client requests in the background. It reports false for any other call.
func (c *Calls) background(x *edge.Request, r *http.Request, ch *Charge, call *Call) (started bool, err error) {
	preferences := preferencesOf(r.Header)
	_, prefers := preferences["respond-async"]
	if call.Task == nil && (!prefers || !backgrounds(call.Endpoint.Operation)) {
		return false, nil
	}
	if slices.Contains(c.forbids(x), providers.ForbidBackground) {
		return true, forbiddenField(providers.ForbidBackground)
	}
	streams := call.Stream || call.Endpoint.Operation == providers.StreamContent
	staged := &tasks.CallCreate{
		StagedCall: activities.StagedCall{
			Method: r.Method, Path: strings.TrimSuffix(r.URL.EscapedPath(), "/async"), Query: queryWithoutKey(r.URL), Format: x.Format.Name,
			Stream: streams, Array: streams && !call.Stream,
			Header: stagedHeader(x, r.Header), Hosted: call.Hosted, Amount: c.cost(call, x.Caller.Budget > 0),
			WebhookURL: r.Header.Get("X-Webhook-Url"),
		},
		Response: call.Task != nil && call.Endpoint.Operation == providers.Responses,
	}
	create := BackgroundCall{Call: staged, Answer: call.Task}
	if wait, named := preferences["wait"]; named && call.Task == nil {
		seconds, err := strconv.ParseUint(wait, 10, 31)
		if err != nil {
			return true, providers.InvalidField("Prefer", "Invalid request: the preference 'wait' must be a whole number of seconds.")
		}
		create.Waits, create.Wait = !streams, min(time.Duration(seconds)*time.Second, maxWait)
	}
	sent := call.Raw
	if staged.Digest, err = digestOf(staged.StagedCall, call.ContentType, sent); err != nil {
		return true, err
	}
	if call.Stage != nil {
		if err := x.Hold(len(call.Body)); err != nil { // the body includes the items
			return true, err
		}
		sent = call.Stage()
	}
	create.Request = providers.VideoRequest{
		Model: call.Model, Alias: call.Alias, WebhookURL: staged.WebhookURL,
		Inputs: []providers.Media{{Data: sent, ContentType: staged.Header.Get("Content-Type")}},
	}
	if call.ContentType == "application/json" {
		if metadata := rawjson.Trim(call.Body).Get("metadata"); metadata.IsObject() && len(metadata) <= maxMetadata {
			create.Request.Metadata = json.RawMessage(metadata)
		}
	}
	if chain := call.Chain; chain.Previous != "" {
		staged.Chain = &activities.StagedChain{
			Previous: chain.Previous, Upstream: chain.Upstream, Channel: chain.By.Channel, Key: chain.By.Fingerprint, Size: int64(len(chain.Items)),
		}
		items := chain.Items
		if items == nil { // a response without items
			items = []byte{}
		}
		create.Request.Inputs = append(create.Request.Inputs, providers.Media{Data: items, ContentType: "application/json"})
	}
	create.Started = func() {
		ch.spent = keepEstimate
		ch.release() // a client that waits for a task does not count as a call
	}
	call.Token, call.Key = x.Caller.ID, x.Key()
	create.Refusal = c.options.Relay.Check(r.Context(), x.Caller.Group, &call.Call)
	switch err := ch.CheckBudget(r.Context()); {
	case err != nil && providers.AsFault(err).Kind != providers.Quota:
		return true, err
	case create.Refusal == nil:
		create.Refusal = err
	}
	if err := x.WhilePermitted(); err != nil {
		return true, err
	}
	return true, c.options.Background.Start(x, r, create)
}

// cost returns what a call may cost, in billionths of the currency. With a budget that is the amount to reserve. Without one it is the cost
// of an answer whose upstream reports no usage.
func (c *Calls) cost(call *Call, budget bool) int64 {
	price, _ := c.options.Prices.Of(call.Model)
	size := sizeOf(call)
	most := size.mayUse()
	if !budget {
		most.Usage.Output = min(most.Usage.Output, defaultOutput*max(1, size.n))
	}
	return int64(price.Cost(most))
}

// backgrounds reports whether Prefer may start a task for calls of the operation.
func backgrounds(operation providers.Operation) bool {
	return !slices.Contains([]providers.Operation{
		providers.CountTokens, providers.Interactions, providers.Realtime, providers.VideoTask,
	}, operation)
}

// begin prepares a call that a worker serves for its task. The create has checked the call and reserved its cost.
func (c *Calls) begin(x *edge.Request, ch *Charge, call *Call) {
	if public := c.options.Router.Public(call.Model); public != call.Model {
		call.Alias, call.Model = call.Model, public
	}
	o := &x.Outcome
	o.Model, o.Operation = call.Model, call.Endpoint.Operation
	ch.size = sizeOf(call)
	ch.price, o.Priced = c.options.Prices.Of(call.Model)
	call.Stream = call.Stream || call.Endpoint.Operation == providers.StreamContent // its task stores events
	call.Begin, call.Ticketing, call.Gather = ch.run.Begin, ch.run.Ticketing, ch.run.Gather
	if strings.HasPrefix(ch.run.TaskID, activities.ResponseIDs) {
		call.Makes = ch.run.TaskID
	}
}

// StagedChain returns the response from which a background call continues, as stored at its create, with its items. It returns nil for any
// other call, or if the call does not continue from previous. hold is called with the size of the items before they are read.
func StagedChain(ctx context.Context, previous string, hold func(n int) error) (*activities.StagedChain, []byte, error) {
	run := activities.CallRunOf(ctx)
	if run == nil || run.Chain == nil || run.Chain.Previous != previous {
		return nil, nil, nil
	}
	if err := hold(int(run.Chain.Size)); err != nil {
		return nil, nil, err
	}
	items, err := run.Items(ctx)
	if err != nil {
		return nil, nil, &providers.Fault{
			Kind: providers.Overloaded, Message: "The previous response cannot be read from the archive.", Accepted: providers.NotAccepted,
			Err: err,
		}
	}
	return run.Chain, items, nil
}

// KeepEarlier records the items of the response from which a background call continues, so that its answer is stored with them.
func KeepEarlier(ctx context.Context, items []byte) {
	if run := activities.CallRunOf(ctx); run != nil {
		run.Earlier = items
	}
}

// holds is the number of bytes of the request that a background call holds until its end.
func (ch *Charge) holds() int {
	if ch.run == nil {
		return 0
	}
	return ch.run.Holds + len(ch.run.Earlier)
}

func (ch *Charge) report(err error) {
	o := &ch.request.Outcome
	ch.run.Fault, ch.run.Usage, ch.run.Cost, ch.run.Priced = providers.AsFault(err), o.Usage, int64(o.Cost), o.Priced
}

// stagedHeader returns the headers that the worker of a call needs: those that the formats read, and the request id.
func stagedHeader(x *edge.Request, header http.Header) http.Header {
	staged := http.Header{"X-Request-Id": {x.AnswerID()}}
	for _, name := range [...]string{"Content-Type", "Openai-Beta", "Anthropic-Beta", "Anthropic-Version", "User-Agent"} {
		if values := header[name]; len(values) > 0 {
			staged[name] = slices.Clone(values)
		}
	}
	return staged
}

func queryWithoutKey(address *url.URL) string {
	query, _ := url.ParseQuery(address.RawQuery)
	query.Del("key")
	return query.Encode()
}

// preferencesOf parses the Prefer headers of RFC 7240: names in lower case, and the first value of each.
func preferencesOf(header http.Header) map[string]string {
	preferences := make(map[string]string)
	for _, line := range header.Values("Prefer") {
		for _, preference := range split(line, ',') {
			main := split(preference, ';')[0]
			name, value, _ := strings.Cut(main, "=")
			name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
			if text, err := strconv.Unquote(value); err == nil {
				value = text
			}
			if _, known := preferences[name]; !known && name != "" {
				preferences[name] = value
			}
		}
	}
	return preferences
}

// split splits a header's text at a separator that is not in a quoted string.
func split(text string, at byte) (parts []string) {
	from, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch {
		case quoted && text[i] == '\\':
			i++
		case text[i] == '"':
			quoted = !quoted
		case text[i] == at && !quoted:
			parts, from = append(parts, text[from:i]), i+1
		}
	}
	return append(parts, text[from:])
}

// digestOf identifies the request of a call: a JSON body byte by byte, a form by its fields and files.
func digestOf(call activities.StagedCall, contentType string, body []byte) (string, error) {
	sum := sha256.New()
	query, _ := url.ParseQuery(call.Query)
	fmt.Fprintf(sum, "%q %q ", call.Operation(), query.Get("alt"))
	kind, parameters, _ := mime.ParseMediaType(contentType) // a malformed one has no type
	if !strings.HasPrefix(kind, "multipart/") {
		sum.Write(body)
		return hex.EncodeToString(sum.Sum(nil)), nil
	}
	if err := digestForm(sum, body, parameters["boundary"]); err != nil {
		return "", providers.InvalidField("", "Invalid request: the form cannot be read.")
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func digestForm(sum hash.Hash, body []byte, boundary string) error {
	form := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := form.NextRawPart()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		content := sha256.New()
		if _, err := io.Copy(content, part); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(part.Header)) {
			fmt.Fprintf(sum, "%q %q ", name, part.Header[name])
		}
		fmt.Fprintf(sum, "%x ", content.Sum(nil))
	}
}
