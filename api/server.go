package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"modelrelay/activities"
	"modelrelay/api/account"
	"modelrelay/api/admin"
	"modelrelay/api/anthropic"
	"modelrelay/api/calls"
	"modelrelay/api/console"
	"modelrelay/api/edge"
	"modelrelay/api/gemini"
	"modelrelay/api/openai"
	"modelrelay/api/operator"
	"modelrelay/api/tasks"
	"modelrelay/api/videos"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/providers/router"
	"modelrelay/storage"
	"modelrelay/storage/tokens"
	workflowtasks "modelrelay/workflows/tasks"
)

// Options are what a Server works with. Relay, Router, Tasks, Tokens, Limits, Ledger and Archive are needed to serve;
// without them it still knows its OpenAPI document. They stay the caller's. New sets Acted.
type Options struct {
	edge.Options
	Operator
	Stores
	Defaults

	Relay  calls.Relay
	Router *router.Router
	Tasks  videos.Tasks
	// Prices are what calls cost; nil charges nothing.
	Prices *pricing.List
	// Forbids says what the tokens of a group may not ask for, in the words of providers.Forbiddable; nil: nothing.
	Forbids func(group string) []string
	// Priced is what the vendors bill other than tokens, which Forbids is about.
	Priced providers.Priced
	// Events has the events of background calls.
	Events tasks.EventLog
	// CallLife is the longest time from the create of a background call to its expiry.
	CallLife time.Duration
	// TokenByID finds the token of a background call; storage.ErrNotFound for one that is gone, storage.ErrUnavailable without an answer.
	TokenByID func(ctx context.Context, id string) (*tokens.Token, error)
	// Health are the checks of /readyz.
	Health []Check
	// Manual has the pages of /docs/; nil: none.
	Manual fs.FS
	// Version is the program's own, for /healthz, /readyz and the OpenAPI document.
	Version string
}

// Operator is what an operator has of the server.
type Operator struct {
	// Admin is for the operator's operations. AdminApart: they are at AdminHandler alone, and Handler has none.
	Admin      admin.Options
	AdminApart bool
	// Console, where it is set, makes the pages of a browser at "/" and below /console. It is given the whole API as it serves requests of
	// this process's own (edge.WithInternalCaller), and what a token reads of its own. ConsoleApart: they are at ConsoleHandler alone.
	Console      func(console.Backend) http.Handler
	ConsoleApart bool
	// Codec, where its Decode is set, decrypts Temporal's payloads for operators at /codec/decode, which is with the operator's operations.
	Codec Codec
}

// Stores keep the limits of tokens, what they used, and videos.
type Stores struct {
	Limits  calls.Limits
	Ledger  calls.Ledger
	Archive videos.Archive
	// Links, where it is set, makes the addresses of finished videos, which need no token then; nil has them read through this server.
	Links videos.Links
	// Responses are the stored responses; nil: none.
	Responses openai.StoredResponses
	// SaveResponse stores a response in the background; nil: they are not stored.
	SaveResponse openai.ResponseSaver
}

// Defaults are the models that serve requests which name none; "" refuses them.
type Defaults struct {
	DefaultVideoModel, DefaultModerationModel, DefaultRealtimeModel string
}

// Server is the gateway's HTTP server. It is safe for concurrent use.
type Server struct {
	edge         *edge.Edge
	calls        *calls.Calls
	videos       *videos.Service
	tasks        *tasks.Service
	saveResponse openai.ResponseSaver
	// tokenByID is that of the Options.
	tokenByID func(ctx context.Context, id string) (*tokens.Token, error)
	api       huma.API
	handler   http.Handler
	// adminHandler serves the operator's operations at their own address, consoleHandler the pages of a browser, and inside all operations.
	adminHandler, consoleHandler, inside http.Handler
	proxies                              edge.Proxies
	// What the listeners hold, have turned away, and whether one of them is full.
	connections, turnedAway, full atomic.Int64
}

// New makes the server with all its operations. It starts nothing and listens nowhere.
func New(o Options) *Server {
	if o.Admin.Service == nil {
		o.Admin.Service = new(operator.Service)
	}
	if o.Admin.Service.Audit != nil {
		o.Acted = o.Admin.Service.Audit.Record
	}
	openAI, anthropicA, geminiB, vendorC := openai.Format(), anthropic.Format(), gemini.Format(), videos.VendorCFormat()
	e := edge.New(o.Options, anthropicA, geminiB, vendorC, openAI)
	s := &Server{edge: e, tokenByID: o.TokenByID, saveResponse: o.SaveResponse, proxies: o.Proxies}
	s.tasks = tasks.New(e, tasks.Options{
		Tasks: o.Tasks, Archive: o.Archive, Events: o.Events, CallLife: o.CallLife, Faults: s.FaultEvents, Opening: opening,
		Deleted: func(ctx context.Context, token, id string) {
			if o.Responses != nil {
				_ = o.Responses.Delete(ctx, token, id) // it expires
			}
		},
	})
	s.calls = calls.New(e, calls.Options{
		Background: s.tasks, Relay: o.Relay, Router: o.Router, Limits: o.Limits, Ledger: o.Ledger,
		Prices: o.Prices, Forbids: o.Forbids, Priced: o.Priced,
	})
	s.videos = videos.New(e, videos.Options{
		Tasks: o.Tasks, Archive: o.Archive, Links: o.Links, Router: o.Router, Calls: s.calls, DefaultModel: o.DefaultVideoModel,
	})
	mux := chi.NewMux()
	mux.NotFound(edge.NotFound)
	mux.MethodNotAllowed(methodNotAllowed(mux))
	s.api = humachi.New(mux, apiConfig(o.Version))
	group := func(formats ...*edge.Format) *edge.Group {
		return edge.NewGroup(s.api, edge.GroupOptions{Formats: formats, Security: tokenSecurity()})
	}
	s.addModels(group(openAI, anthropicA, geminiB))
	anthropic.Add(group(anthropicA), s.calls)
	longRunning := group(geminiB)
	begin, read := s.videos.AddGemini(longRunning)
	gemini.Add(longRunning, s.calls, begin, read)
	interactions := gemini.NewInteractions(s.calls, s.tasks)
	interactions.Add(longRunning, s.videos.AddInteractions(longRunning, interactions.Serve))
	openai.Add(group(openAI), s.calls, openai.Options{
		ModerationModel: o.DefaultModerationModel, RealtimeModel: o.DefaultRealtimeModel, Responses: o.Responses, Tasks: s.tasks,
	})
	s.videos.Add(group(openAI), group(vendorC))
	s.tasks.Add(group(openAI))
	own := &account.Service{
		Limits: o.Limits, Money: o.Admin.Service.Money, Usage: o.Admin.Service.UsageOf, Logs: o.Admin.Service.Logs, Tasks: o.Tasks,
		Models: s.calls.Models,
	}
	account.Add(group(openAI), own)
	o.Admin.Content = func(x *edge.Request, r *http.Request, task workflowtasks.Task) error {
		if task.Kind() == activities.KindCall {
			return s.tasks.ServeResult(x, r, task)
		}
		return s.videos.ServeContent(x, r, task)
	}
	admin.Add(s.api, openAI, o.Admin)
	dropHumaErrors(s.api.OpenAPI())
	declareBackground(s.api.OpenAPI())
	readReference().fill(s.api.OpenAPI())
	s.addDocs(mux, o.Manual)
	s.inside = anew(e.Handler(mux))
	health := &health{edge: e, version: o.Version, checks: o.Health}
	if o.Console != nil {
		s.addConsole(mux, o.Console(console.Backend{API: s.inside, Account: own, Ready: health.failed}))
	} else {
		addRoot(mux, http.HandlerFunc(root))
	}
	health.routes(mux)
	if o.Codec.Decode != nil {
		(&codec{o.Codec, o.Admin.Operators}).routes(mux)
	}
	public := e.CORS(mux)
	var apart []string
	if o.AdminApart {
		apart = append(apart, admin.Root, codecRoot)
	}
	if o.ConsoleApart {
		apart = append(apart, consoleRoot)
		public = plainRoot(public)
	}
	elsewhere, pages := within(apart...), within(consoleRoot, edge.AlivePath, edge.ReadyPath)
	public = limited(public, func(path string) bool { return !elsewhere(path) })
	s.handler = slashes(e.Handler(streams(public)))
	s.adminHandler = e.Handler(streams(limited(mux, within(admin.Root, codecRoot, edge.AlivePath, edge.ReadyPath))))
	s.consoleHandler = e.Handler(streams(limited(mux, func(path string) bool { return path == rootPath || pages(path) })))
	return s
}

// Handler serves every route; with AdminApart, all but the operator's.
func (s *Server) Handler() http.Handler { return s.handler }

// AdminHandler serves the operator's routes and the health of the process, for a listener of their own.
func (s *Server) AdminHandler() http.Handler { return s.adminHandler }

// InsideHandler serves every route to requests that the process makes of itself, whose contexts edge.WithInternalCaller makes. No
// listener may have it: with AdminApart the operator's routes would be in public.
func (s *Server) InsideHandler() http.Handler { return s.inside }

// ServeCall serves a background call as a client's own request is served. It implements activities.Caller.
func (s *Server) ServeCall(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
	ctx := activities.WithCallRun(r.Context(), run)
	ctx = edge.WithInternalCaller(ctx, &edge.InternalCaller{Token: run.Token, Find: s.tokenOfCall, Background: true})
	switch r = r.WithContext(ctx); {
	case strings.HasPrefix(run.TaskID, activities.ResponseIDs):
		s.serveResponse(w, r, run)
	case gemini.IsInteraction(r.URL.Path):
		s.serveInteraction(w, r, run)
	default:
		s.serveReported(w, r, run)
	}
}

// readCall reads the body of a background call, and makes the request one with the body that whole returns, or running if its upstream
// makes the answer already; false if it cannot be read now. The edge counts it until that body is read, which is counted then.
func (s *Server) readCall(r *http.Request, run *activities.CallRun, whole, running func([]byte) []byte) (request []byte, ok bool) {
	refuse := func(message string, err error) ([]byte, bool) {
		run.Fault = &providers.Fault{Kind: providers.Overloaded, Message: message, Accepted: providers.NotAccepted, Err: err}
		return nil, false
	}
	release, err := s.edge.HoldBackground(run.Token, max(0, r.ContentLength))
	if err != nil {
		return refuse("The worker has no room for the call.", err)
	}
	var read bytes.Buffer
	if r.ContentLength > 0 {
		read.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	if _, err := read.ReadFrom(r.Body); err != nil {
		release()
		return refuse("The call cannot be read from the archive.", err)
	}
	if t := run.Ticketing; t != nil && t.At != (providers.KeyRef{}) {
		whole = running
	}
	sent := whole(read.Bytes())
	body := &releasing{release: release}
	body.Reset(sent)
	r.Body, r.ContentLength = body, int64(len(sent))
	return read.Bytes(), true
}

// releasing reads bytes, and holds them only until its end. release is called at the first read.
type releasing struct {
	bytes.Reader

	release func()
}

// Read implements io.Reader.
func (b *releasing) Read(p []byte) (int, error) {
	b.release()
	n, err := b.Reader.Read(p)
	if b.Len() == 0 {
		b.Reset(nil)
	}
	return n, err
}

// Close implements io.Closer.
func (b *releasing) Close() error {
	b.release()
	b.Reset(nil)
	return nil
}

// serveInteraction serves an interaction with background: true under the id of its task.
func (s *Server) serveInteraction(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
	request, ok := s.readCall(r, run, gemini.InteractionRequest, gemini.RunningInteraction)
	if !ok {
		return
	}
	defer func() { _ = r.Body.Close() }() // it never fails
	worker := gemini.NewInteractionWorker(w, run.TaskID, run.Created, request)
	defer func() { run.Copy = activities.TicketOf(run.By, worker.CopyID()) }()
	s.inside.ServeHTTP(worker, r)
	if failure, fault := worker.End(run.Fault == nil); run.Fault == nil {
		run.Failure, run.Fault = failure, fault
	}
}

// serveReported serves a background call, and records the failure that its answer reports.
func (s *Server) serveReported(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
	answer := &tasks.Reported{ResponseWriter: w}
	s.inside.ServeHTTP(answer, r)
	run.Failure = answer.Failure()
}

// tokenOfCall finds the token of a background call. Tokens stay known after their end, so a token that is unknown was lost with Redis's
// data: the process that has it in its file writes it again, and the call waits.
func (s *Server) tokenOfCall(ctx context.Context, id string) (*tokens.Token, error) {
	token, err := s.tokenByID(ctx, id)
	if errors.Is(err, storage.ErrNotFound) {
		err = fmt.Errorf("token %q is unknown: %w", id, storage.ErrUnavailable)
	}
	return token, err
}

// serveResponse serves a response with background: true under the id of its task, and stores it as those of translated models are.
func (s *Server) serveResponse(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
	request, ok := s.readCall(r, run, openai.Request, openai.Running)
	if !ok {
		return
	}
	defer func() { _ = r.Body.Close() }() // it never fails
	worker := openai.NewWorker(w, run.TaskID, run.Created, request)
	run.Holds = worker.Holds()
	s.serveReported(worker, r, run)
	status := worker.End()
	run.Copy = activities.TicketOf(run.By, worker.Made())
	switch {
	case run.Fault != nil || run.Failure != nil:
		return
	case status == "cancelled": // by another client of the upstream
		run.Failure = &providers.VideoFailure{Code: "server_error", Message: "The upstream cancelled the response."}
		return
	case status == "incomplete":
		run.Event = status
	}
	s.saveResponse.Save(context.WithoutCancel(r.Context()), run.Token, worker, run.Earlier)
}

// FaultEvents implements activities.Caller.
func (s *Server) FaultEvents(call activities.StagedCall, fault *providers.Fault, n int64) []byte {
	if call.Path == openai.ResponsesPath {
		return openai.ResponseError(fault, int(n))
	}
	if gemini.IsInteraction(call.Path) {
		return gemini.InteractionError(fault, n)
	}
	return s.edge.FaultEvents(call.Format, fault, call.Header.Get("X-Request-Id"))
}

// opening returns what makes the first events of a call's stream, which exist before its worker has begun; nil: there are none.
func opening(of workflowtasks.Task) func(request []byte) [][]byte {
	if gemini.IsInteraction(strings.TrimPrefix(of.Operation, http.MethodPost+" ")) {
		return func(request []byte) [][]byte { return gemini.Opening(of, request) }
	}
	if strings.HasPrefix(of.ID, activities.ResponseIDs) {
		return openai.Opening(of)
	}
	return nil
}

// anew serves requests that were made while another one is routed, whose context they have, as requests of their own.
func anew(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, (*chi.Context)(nil))))
	})
}

// ConsoleHandler serves the pages of a browser and the health of the process, for a listener of their own.
func (s *Server) ConsoleHandler() http.Handler { return s.consoleHandler }

func limited(next http.Handler, has func(path string) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !has(r.URL.Path) {
			edge.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func within(folders ...string) func(path string) bool {
	return func(path string) bool {
		return slices.ContainsFunc(folders, func(folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") })
	}
}

// plainRoot serves the page at "/" that needs nothing of the console.
func plainRoot(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == rootPath && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			root(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// slashes takes doubled and trailing slashes out of the paths of calls: base URLs often end in one.
func slashes(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := r.URL.Path; isCall(path) && (strings.Contains(path, "//") || strings.HasSuffix(path, "/")) {
			address := *r.URL
			address.Path, address.RawPath = single(address.Path), single(address.RawPath)
			r = r.Clone(r.Context())
			r.URL = &address
		}
		next.ServeHTTP(w, r)
	})
}

// isCall reports whether a path is below a version of a vendor's API.
func isCall(path string) bool { return strings.HasPrefix(strings.TrimLeft(path, "/"), "v1") }

// single is a path with one slash in place of several, and none at its end.
func single(path string) string {
	var out strings.Builder
	for segment := range strings.SplitSeq(path, "/") {
		if segment != "" {
			out.WriteString("/" + segment)
		}
	}
	return out.String()
}

// Drain makes /readyz report that this process is stopping, so that it gets no new work, and ends open realtime
// conversations with "going away", event streams of tasks, and waits for a change. Other requests go on being served.
func (s *Server) Drain() { s.edge.Drain() }

// Open is what a server is at this moment.
type Open struct {
	// Requests are all of them: the others and, for a moment, probes are among them.
	Requests int64
	// Sockets are realtime conversations, Watchers the event streams of tasks.
	Sockets, Watchers int64
	// Connections are those of clients, idle ones too. Full reports that no other is accepted; TurnedAway counts those that
	// were closed at once since the start, because their network held its share, and requests over HTTP/2 that found no place.
	Connections, TurnedAway int64
	Full                    bool
}

// Open returns what the server is serving now.
func (s *Server) Open() Open {
	return Open{
		Requests: s.edge.Requests(), Sockets: s.calls.Sockets(), Watchers: s.videos.Watchers() + s.tasks.Watchers(),
		Connections: s.connections.Load(), TurnedAway: s.turnedAway.Load(), Full: s.full.Load() > 0,
	}
}

// methodNotAllowed names in Allow what the path does take.
func methodNotAllowed(mux *chi.Mux) http.HandlerFunc {
	methods := []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	}
	return func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.RawPath
		if path == "" {
			path = r.URL.Path
		}
		allowed := slices.DeleteFunc(slices.Clone(methods), func(method string) bool {
			return !mux.Match(chi.NewRouteContext(), method, path)
		})
		if len(allowed) == 0 { // a method the router has no name for, at a path it does not know
			edge.NotFound(w, r)
			return
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		x := edge.At(w)
		x.FormatBySDK(r)
		if edge.HeaderLists(r.Header, "Upgrade", "websocket") { // an agent that tries a socket first gives up at once
			x.FailWith(http.StatusUpgradeRequired, providers.Faultf(providers.MethodNotAllowed, "This path takes no WebSocket, but %s.",
				strings.Join(allowed, ", ")))
			return
		}
		x.Fail(providers.Faultf(providers.MethodNotAllowed, "This path does not take %s.", r.Method))
	}
}
