package api

import (
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"
	"go.opentelemetry.io/otel/trace"

	"modelrelay/api/body"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/storage"
)

// Defaults of Options.
const (
	DefaultMaxBody      = 64 << 20
	DefaultBodyTimeout  = 5 * time.Minute
	DefaultWriteTimeout = time.Minute
)

// Limits of the HTTP server itself.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
)

// Router says what a group can call.
type Router interface {
	// Models lists by name what the group can call.
	Models(group string) []providers.Model
	// Serves tells whether some channel would take it, one that rests too.
	Serves(want providers.Want) bool
}

// Ledger takes what calls used. Record never blocks.
type Ledger interface {
	Record(entry storage.Entry)
}

// Options are what a Server works with. Relay, Router, Tasks, Tokens, Limits, Ledger and Archive are needed to serve;
// without them it still knows its OpenAPI document. They stay the caller's.
type Options struct {
	Relay   Relay
	Router  Router
	Tasks   Tasks
	Tokens  Tokens
	Limits  Limits
	Ledger  Ledger
	Archive Archive
	// Prices are what calls cost; nil charges nothing.
	Prices *pricing.List
	// Links, where it is set, makes the addresses of finished videos, which need no token then; nil has them read through
	// this server.
	Links Links
	// Health are the checks of /readyz.
	Health []Check
	// Admin is for the operator's operations. AdminApart: they are at AdminHandler alone, and Handler has none.
	Admin      Admin
	AdminApart bool
	// Proxies are the networks of reverse proxies whose X-Forwarded-For and Forwarded name the address that a request
	// comes from; none: the connection's own address counts.
	Proxies []netip.Prefix
	// Origins are those whose pages may call /v1 and /v1beta from a browser, "*" for every one; none: only pages of this
	// server's own.
	Origins []string
	// DefaultVideoModel serves video creates that name no model; "" refuses them.
	DefaultVideoModel string
	// DefaultModerationModel serves moderations that name no model; "" refuses them.
	DefaultModerationModel string
	// DefaultRealtimeModel serves realtime conversations that name no model; "" refuses them.
	DefaultRealtimeModel string
	// MaxBody is the largest request body in bytes; 0 means DefaultMaxBody.
	MaxBody int64
	// BodyMemory is what all request bodies under way may hold together, in bytes, and half of it what those of one token
	// may; 0 means DefaultBodyMemory. It should be four times MaxBody at least.
	BodyMemory int64
	// BodyTimeout is how long a request body may take to arrive; 0 means DefaultBodyTimeout.
	BodyTimeout time.Duration
	// WriteTimeout is how long a client may leave an answer's next bytes unread; 0 means DefaultWriteTimeout.
	WriteTimeout time.Duration
	// Tracer makes a span of each request but probes; nil: no spans.
	Tracer trace.Tracer
	// Seen is called with every request that is over but probes, in the goroutine that served it; it must not wait. nil:
	// nobody counts.
	Seen func(Seen)
	// Log takes one info line per request; nil is silent.
	Log *slog.Logger
	// Version is the program's own, for /healthz.
	Version string
}

// Server is the HTTP edge. It is safe for concurrent use.
type Server struct {
	relay      Relay
	router     Router
	tasks      Tasks
	tokens     Tokens
	limits     Limits
	ledger     Ledger
	prices     *pricing.List
	archive    Archive
	links      Links
	admin      Admin
	callers    *callers
	videoModel string
	video      videoChecks
	// What sources sent of wrong keys.
	wrongAdminKeys, wrongClientKeys wrongKeys
	proxies                         proxies
	// moderationModel serves moderations that name none.
	moderationModel string
	// realtimeModel serves realtime conversations that name none.
	realtimeModel string
	maxBody       int64
	bodies        *bodyMemory
	discards      discards
	bodyTimeout   time.Duration
	writeTimeout  time.Duration
	log           *slog.Logger
	tracer        trace.Tracer
	seen          func(Seen)
	open          open
	version       string
	// eventsEvery is the longest silence of an event stream.
	eventsEvery time.Duration

	api     huma.API
	handler http.Handler
	// adminHandler serves the operator's operations where they have an address of their own.
	adminHandler http.Handler

	health  *health
	buffers sync.Pool // of *[copyBuffer]byte
	// eventBuffers are of *[eventBuffer]byte.
	eventBuffers sync.Pool
	draining     atomic.Bool
	stopping     chan struct{} // closed once draining
}

// New makes the edge with all its operations. It starts nothing and listens nowhere.
func New(o Options) *Server {
	hookErrors()
	s := &Server{
		relay: o.Relay, router: o.Router, tasks: o.Tasks, tokens: o.Tokens, limits: o.Limits, ledger: o.Ledger, prices: o.Prices,
		archive: o.Archive, links: o.Links, admin: o.Admin, videoModel: o.DefaultVideoModel, video: newVideoChecks(), moderationModel: o.DefaultModerationModel, version: o.Version,
		maxBody:      orDefault(o.MaxBody, DefaultMaxBody),
		bodies:       newBodyMemory(orDefault(o.BodyMemory, DefaultBodyMemory)),
		bodyTimeout:  orDefault(o.BodyTimeout, DefaultBodyTimeout),
		writeTimeout: orDefault(o.WriteTimeout, DefaultWriteTimeout),
		log:          o.Log, seen: o.Seen,
		tracer: o.Tracer, proxies: o.Proxies,

		realtimeModel: o.DefaultRealtimeModel, eventsEvery: eventsEvery, stopping: make(chan struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.callers = newCallers(s.callerOf)
	s.health = newHealth(s, o.Health)

	mux := chi.NewMux()
	mux.NotFound(s.notFound)
	mux.MethodNotAllowed(s.methodNotAllowed(mux))
	s.api = humachi.New(mux, apiConfig())
	s.addOperations()
	dropHumaErrors(s.api.OpenAPI())
	s.addDocs(mux)
	s.health.routes(mux)
	s.handler = s.observe(s.door(cors(mux, o.Origins), func(admin bool) bool { return !admin || !o.AdminApart }))
	s.adminHandler = s.observe(s.door(mux, func(admin bool) bool { return admin }))
	return s
}

// addOperations is the table of what this server serves, one line per family of operations.
func (s *Server) addOperations() {
	registry := s.api.OpenAPI().Components.Schemas
	openAI := s.newGroup(providers.OpenAI, body.SchemaOf[openAIError](registry))
	byHeader := s.newGroup("", &huma.Schema{AnyOf: []*huma.Schema{
		body.SchemaOf[openAIError](registry), body.SchemaOf[anthropicError](registry), body.SchemaOf[geminiError](registry),
	}})

	s.addModels(byHeader)
	s.addAnthropicMessages(s.newGroup(providers.Anthropic, body.SchemaOf[anthropicError](registry)))
	s.addGemini(s.newGroup(providers.Gemini, body.SchemaOf[geminiError](registry)))
	s.addOpenAIChat(openAI)
	s.addOpenAIResponses(openAI)
	s.addOpenAIText(openAI)
	s.addOpenAIAudio(openAI)
	s.addOpenAIImages(openAI)
	s.addOpenAIVideos(openAI)
	s.addGenericVideos(openAI)
	s.addVendorC(s.newGroup(providers.VendorC, body.SchemaOf[vendorCError](registry)))
	s.addRealtime(openAI)
	s.addAdmin(s.newAdminGroup(body.SchemaOf[openAIError](registry)))
}

// Handler serves every route; with AdminApart, all but the operator's.
func (s *Server) Handler() http.Handler { return s.handler }

// AdminHandler serves the operator's routes and the health of the process, for a listener of their own.
func (s *Server) AdminHandler() http.Handler { return s.adminHandler }

// door serves those paths that open lets in, told whether a path is the operator's; the process's health always.
func (s *Server) door(next http.Handler, open func(admin bool) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		admin := path == adminRoot || strings.HasPrefix(path, adminRoot+"/")
		if !open(admin) && path != alivePath && path != readyPath {
			s.notFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// HTTPServer is a server for a handler with the limits that a public listener needs. There is no timeout over a whole
// request: a stream may last for hours. Bodies and unread answers have their own.
func (s *Server) HTTPServer(addr string, handler http.Handler) *http.Server {
	return &http.Server{
		Addr: addr, Handler: handler, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
}

// Drain makes /readyz say that this process is stopping, so that nobody sends it new work, and ends open realtime
// conversations with "going away", event streams of tasks, and waits for a change. Other requests go on being served.
func (s *Server) Drain() {
	if !s.draining.Swap(true) {
		close(s.stopping)
	}
}

func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	s.fail(exchangeAt(w), nothingHere())
}

// nothingHere is the fault of a path without an operation. Most who read it have a wrong base URL.
func nothingHere() *providers.Fault {
	return providers.Faultf(providers.NotFound, "There is nothing at this path. /docs lists the paths that there are.")
}

// methodNotAllowed names in Allow what the path does take.
func (s *Server) methodNotAllowed(mux *chi.Mux) http.HandlerFunc {
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
			s.notFound(w, r)
			return
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		s.fail(exchangeAt(w), providers.Faultf(providers.MethodNotAllowed, "This path does not take %s.", r.Method))
	}
}

func orDefault[N int64 | time.Duration](n, otherwise N) N {
	if n > 0 {
		return n
	}
	return otherwise
}
