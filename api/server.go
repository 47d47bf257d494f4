package api

import (
	"context"
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
	"modelrelay/storage/tokens"
	workflowtasks "modelrelay/workflows/tasks"
)

// Options are the dependencies of a Server. Relay, Router, Tasks, Tokens, Limits, Ledger and Archive are required to serve; without them a
// Server only has its OpenAPI document. The caller owns them. New sets Acted.
type Options struct {
	edge.Options
	Operator
	Stores
	Defaults

	Relay  calls.Relay
	Router *router.Router
	Tasks  tasks.Tasks
	// Prices are the prices of calls; nil: calls cost nothing.
	Prices *pricing.List
	// Forbids returns what the tokens of a group may not request, as values of providers.Forbiddable; nil: nothing.
	Forbids func(group string) []string
	// Priced has what the vendors bill other than tokens, for Forbids.
	Priced providers.Priced
	// Events stores the events of background calls.
	Events tasks.EventLog
	// CallTTL is the longest time from the create of a background call to its expiry.
	CallTTL time.Duration
	// TokenByID finds the token of a background call. It returns storage.ErrNotFound for a removed token, and storage.ErrUnavailable if the
	// store does not answer.
	TokenByID func(ctx context.Context, id string) (*tokens.Token, error)
	// Health are the checks of /readyz.
	Health []Check
	// Manual has the pages of /docs/; nil: none.
	Manual fs.FS
	// Version is the program's version, for /healthz, /readyz and the OpenAPI document.
	Version string
}

// Operator has the parts of the server that operators use.
type Operator struct {
	// Admin has the operator's operations. AdminApart: only AdminHandler serves them, not Handler.
	Admin      admin.Options
	AdminApart bool
	// Console returns the handler of the pages at "/" and below /console; nil: there are none. Its argument serves the whole API for requests
	// of this process (edge.WithInternalCaller), and the data of a token. ConsoleApart: only ConsoleHandler serves the pages.
	Console      func(console.Backend) http.Handler
	ConsoleApart bool
	// Codec decrypts Temporal's payloads for operators at /codec/decode, on the same listener as the operator's operations. Without Decode
	// there is no such route.
	Codec Codec
}

// Stores store the limits of tokens, their usage, and videos.
type Stores struct {
	Limits  calls.Limits
	Ledger  calls.Ledger
	Archive tasks.Archive
	// Links returns the addresses of finished videos, which need no token; nil: clients read videos through this server.
	Links videos.Links
	// Responses are the stored responses; nil: none.
	Responses openai.StoredResponses
	// SaveResponse stores a response in the background; nil: they are not stored.
	SaveResponse openai.ResponseSaver
}

// Defaults are the models of requests without a model; "": such requests are refused.
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
	// tokenByID is Options.TokenByID.
	tokenByID func(ctx context.Context, id string) (*tokens.Token, error)
	api       huma.API
	handler   http.Handler
	// adminHandler serves the operator's operations on their own listener, consoleHandler the pages of the console, and internal all
	// operations.
	adminHandler, consoleHandler, internal http.Handler
	proxies                                edge.Proxies
	// The connections of the listeners, the refused ones, and the number of listeners that are full.
	connections, turnedAway, full atomic.Int64
}

// New returns a server with all operations. It starts no goroutine and does not listen.
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
		Tasks: o.Tasks, Archive: o.Archive, Events: o.Events, CallTTL: o.CallTTL, Faults: s.FaultEvents, Opening: opening,
		Deleted: func(ctx context.Context, token, id string) {
			if o.Responses != nil {
				_ = o.Responses.Delete(ctx, token, id) // the response expires by itself
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
	s.internal = reroute(e.Handler(mux))
	health := &health{edge: e, version: o.Version, checks: o.Health}
	if o.Console != nil {
		s.addConsole(mux, o.Console(console.Backend{API: s.internal, Account: own, Ready: health.failed}))
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
	s.handler = slashes(e.Handler(perStream(public)))
	s.adminHandler = e.Handler(perStream(limited(mux, within(admin.Root, codecRoot, edge.AlivePath, edge.ReadyPath))))
	s.consoleHandler = e.Handler(perStream(limited(mux, func(path string) bool { return path == rootPath || pages(path) })))
	return s
}

// Handler serves every route, but not the operator's with AdminApart.
func (s *Server) Handler() http.Handler { return s.handler }

// AdminHandler serves the operator's routes and the health of the process, for their own listener.
func (s *Server) AdminHandler() http.Handler { return s.adminHandler }

// InternalHandler serves every route for requests of this process, with a context of edge.WithInternalCaller. No listener may use it: with
// AdminApart it would publish the operator's routes.
func (s *Server) InternalHandler() http.Handler { return s.internal }

// reroute serves requests that a handler makes with the context of its own request. It removes chi's routing state, so that they are routed
// separately.
func reroute(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, (*chi.Context)(nil))))
	})
}

// ConsoleHandler serves the pages of the console and the health of the process, for their own listener.
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

// plainRoot serves the landing page at "/" without the console.
func plainRoot(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == rootPath && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			root(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// slashes removes doubled and trailing slashes from the paths of calls: base URLs often end in a slash.
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

// isCall reports whether a path begins with the version of a vendor's API.
func isCall(path string) bool { return strings.HasPrefix(strings.TrimLeft(path, "/"), "v1") }

// single replaces repeated slashes by one, and removes those at the end.
func single(path string) string {
	var out strings.Builder
	for segment := range strings.SplitSeq(path, "/") {
		if segment != "" {
			out.WriteString("/" + segment)
		}
	}
	return out.String()
}

// Drain makes /readyz report that this process is stopping, so that balancers send no new requests. It ends open realtime conversations
// with "going away", event streams of tasks, and waits for a change. Other requests continue.
func (s *Server) Drain() { s.edge.Drain() }

// Open has the current numbers of a server.
type Open struct {
	// Requests are all running requests, with the others below and, for a moment, probes.
	Requests int64
	// Sockets are realtime conversations. Watchers are event streams of tasks.
	Sockets, Watchers int64
	// Connections are those of clients, also idle ones. Full: a listener accepts no other connection. TurnedAway counts, since the start,
	// connections that were closed because their network held its share, and requests over HTTP/2 without a free slot.
	Connections, TurnedAway int64
	Full                    bool
}

// Open returns the current numbers.
func (s *Server) Open() Open {
	return Open{
		Requests: s.edge.Requests(), Sockets: s.calls.Sockets(), Watchers: s.videos.Watchers() + s.tasks.Watchers(),
		Connections: s.connections.Load(), TurnedAway: s.turnedAway.Load(), Full: s.full.Load() > 0,
	}
}

// methodNotAllowed lists the methods of the path in Allow.
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
		if len(allowed) == 0 { // neither the method nor the path is known
			edge.NotFound(w, r)
			return
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		x := edge.At(w)
		x.FormatBySDK(r)
		if edge.HeaderLists(r.Header, "Upgrade", "websocket") { // an agent that tries WebSocket first then uses HTTP
			x.FailWith(http.StatusUpgradeRequired, providers.Faultf(providers.MethodNotAllowed, "This path does not accept a WebSocket, only %s.",
				strings.Join(allowed, ", ")))
			return
		}
		x.Fail(providers.Faultf(providers.MethodNotAllowed, "This path does not take %s.", r.Method))
	}
}
