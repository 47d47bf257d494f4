// Package console is the gateway in a browser: pages for operators and for holders of a token. Its pages are templates over the results
// of packages operator and account, which decide what an operator or a token may do. Only a page's script calls the API itself, inside
// the process. It imports no format and no vendor.
package console

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"modelrelay/api/account"
	"modelrelay/api/console/assets"
	"modelrelay/api/console/snippets"
	"modelrelay/api/console/words"
	"modelrelay/api/operator"
	"modelrelay/storage"
	"modelrelay/storage/sessions"
	"modelrelay/storage/tokens"
)

// Root is the folder of the console's paths.
const Root = "/console"

// Role is what a session may do.
type Role string

const (
	// Operator sees and changes everything.
	Operator Role = "operator"
	// Viewer sees everything and changes nothing.
	Viewer Role = "viewer"
	// Holder has one token, and sees what is that token's.
	Holder Role = "holder"
)

// User identifies an operator or the holder of a token.
type User struct {
	// Kind is "operator" or "token", Owner the operator's name or the token's stable id, and Name the name that pages show.
	Kind, Owner, Name string
	Role              Role
	// Fingerprint is that of the key that opens the console for them; it changes with the key.
	Fingerprint string
}

// Sessions keeps the sessions of browsers, as sessions.Store does. Errors are storage.ErrNotFound and storage.ErrUnavailable.
type Sessions interface {
	// Begin starts a session; secret is for the browser. A *sessions.TooManyError refuses it to an owner with many new ones.
	Begin(ctx context.Context, s sessions.Session) (secret string, begun sessions.Session, err error)
	Find(ctx context.Context, secret string) (sessions.Session, error)
	List(ctx context.Context, kind, owner string) ([]sessions.Session, error)
	End(ctx context.Context, kind, owner, id string) error
	EndAll(ctx context.Context, kind, owner string) error
	// Offer makes a sign-in link's code, Peek returns its owner, and Take uses it up.
	Offer(ctx context.Context, link sessions.Link, lasts time.Duration) (code string, err error)
	Peek(ctx context.Context, code string) (sessions.Link, error)
	Take(ctx context.Context, code string) (sessions.Link, error)
	// Once reports whether an owner gives a word for the first time. It may forget the oldest of many hundreds.
	Once(ctx context.Context, kind, owner, word string) (first bool, err error)
}

// Backend is what a console works with of the server that it belongs to.
type Backend struct {
	// API serves the whole API to requests of this process (edge.WithInternalCaller).
	API http.Handler
	// Account reads what is a token's own.
	Account *account.Service
	// Ready returns the status of /readyz, and the errors of the checks that failed by their names.
	Ready func(ctx context.Context) (status string, failed map[string]string)
}

// Options are what a console works with. All of it stays the caller's, and all but URL, the texts and Log is needed.
type Options struct {
	Backend

	// Operator performs the actions of operators.
	Operator *operator.Service
	// Token finds a token by its id, with the limits that hold for it. The error is storage.ErrNotFound or storage.ErrUnavailable.
	Token func(ctx context.Context, id string) (*tokens.Token, error)
	// Key finds the owner of a key that came with a request: storage.ErrNotFound for a wrong one, storage.ErrUnavailable.
	Key func(r *http.Request, key string) (User, error)
	// Wrong counts a wrong key or link against the request's network, and returns how long that has to wait; 0 for the first ones.
	Wrong func(r *http.Request) time.Duration
	// Lookup finds an owner as it is now: storage.ErrNotFound for one that may no longer sign in.
	Lookup func(ctx context.Context, kind, owner string) (User, error)
	// Opened reports whether there is any operator; without one the sign-in shows how to add one.
	Opened   func() bool
	Sessions Sessions
	// URL is the one address at which people sign in; nil: loopback alone.
	URL *url.URL
	// TraceURL leads to the operator's tracing, with {trace_id} in it; "" for none.
	TraceURL string
	// TemporalURL is where the Temporal UI is, without a path; "" for not known.
	TemporalURL string
	// Currency is written behind amounts of money; "" for nothing.
	Currency string
	// Log records defects; nil is silent.
	Log *slog.Logger
}

// Server is the console's handler. It is safe for concurrent use and there is nothing to close.
type Server struct {
	o         Options
	auth      *auth
	words     words.Texts
	templates templates
	assets    *assets.Files
	pages     []page
	handler   http.Handler
}

// New makes a console. It panics where its own words or assets are broken.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{o: o, words: words.Load(), assets: assets.Load(), pages: allPages()}
	s.auth = &auth{s}
	s.templates = newTemplates(s.words)
	mux := http.NewServeMux()
	for _, route := range s.routes() {
		mux.Handle(route.pattern, route.handler)
	}
	s.handler = s.guard(mux)
	return s
}

type route struct {
	pattern string
	handler http.Handler
}

// routes are all there are. The table of a test has the roles of each.
func (s *Server) routes() []route {
	list := []route{
		{"GET /{$}", http.HandlerFunc(s.landing)},
		{"GET " + Root + "/assets/", http.StripPrefix(Root+"/assets/", s.assets)},
		{"GET " + Root + "/sign-in", s.open(s.auth.showSignIn)},
		{"POST " + Root + "/sign-in", s.open(s.auth.signIn)},
		{"GET " + Root + "/enter/{code}", s.open(s.auth.showLink)},
		{"POST " + Root + "/enter/{code}", s.open(s.auth.useLink)},
		{"POST " + Root + "/sign-out", s.open(s.auth.signOut)},
		{"POST " + Root + "/appearance", s.open(s.setAppearance)},
		{Root + "/as/{token}/", s.signedIn(s.proxy)},
		{"GET " + Root + "/tasks/{id}/content", s.signedIn(s.taskContent)},
		{"GET " + Root + "/tasks/{id}/text", s.signedIn(s.taskText)},
	}
	for _, p := range s.pages {
		list = append(list, route{"GET " + Root + p.path, s.signedIn(func(v *View) { s.show(v, p) })})
		if len(p.acts) > 0 {
			list = append(list, route{"POST " + Root + p.path, s.signedIn(func(v *View) { s.act(v, p) })})
		}
	}
	return append(list,
		route{"GET " + Root + "/{$}", s.open(func(v *View) { v.redirect(Root) })},
		route{Root + "/", s.open(s.nothingHere)},
		route{Root, s.open(s.nothingHere)}, // a method that it does not take
	)
}

// ServeHTTP serves Root and what is below it, and "/".
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// policy is that of every page. No page has an inline script, style or handler, and no script can make HTML.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// guard sets the headers of every page and turns away what must not reach one: foreign hosts and forged requests.
func (s *Server) guard(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", s.referrer(r))
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		h.Set("Vary", "Cookie, Accept-Language")
		switch {
		case r.URL.Path == "/", safe(r.Method) && strings.HasPrefix(r.URL.Path, Root+"/assets/"):
		case !s.knownHost(r) && (r.Method != http.MethodPost || r.URL.Path != Root+"/appearance"): // the landing page has its forms at every host
			s.fail(s.view(w, r), http.StatusNotFound, "refused.host")
			return
		case safe(r.Method):
		case r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == "", protection.Check(r) != nil:
			s.fail(s.view(w, r), http.StatusForbidden, "refused.forged")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// referrer is the policy for referrers: no site learns where a link was. Over plain http to a host that is not this machine browsers
// send no Sec-Fetch-Site, and without referrers a form's Origin is "null": there the own site learns it, so that its forms are known.
func (s *Server) referrer(r *http.Request) string {
	if r.TLS != nil || loopback(r.Host) || s.secure() && s.knownHost(r) {
		return "no-referrer"
	}
	return "same-origin"
}

func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// knownHost reports whether people may sign in at the host that a request names.
func (s *Server) knownHost(r *http.Request) bool {
	if s.o.URL != nil {
		return strings.EqualFold(r.Host, s.o.URL.Host)
	}
	return loopback(r.Host)
}

// loopback reports whether a host is this machine, with or without a port.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

func (s *Server) secure() bool { return s.o.URL != nil && s.o.URL.Scheme == "https" }

// open is the handler of a page that needs no session.
func (s *Server) open(do func(v *View)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { do(s.view(w, r)) })
}

// signedIn is the handler of what needs a session. Without one it leads to the sign-in; a link from another site comes
// without its strict cookie and is loaded once more, from here.
func (s *Server) signedIn(do func(v *View)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := s.view(w, r)
		secret := s.auth.cookie(r)
		if secret == "" && r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Site") == "cross-site" &&
			r.Header.Get("Sec-Fetch-Mode") == "navigate" {
			s.render(v, http.StatusOK, "again", nil)
			return
		}
		err := s.auth.find(v, secret)
		switch {
		case err == nil:
			do(v)
		case errors.Is(err, storage.ErrNotFound):
			s.auth.clearCookie(v)
			if !safe(r.Method) || r.Header.Get("Sec-Fetch-Dest") == "empty" { // a script asks: it shows the page that it is on
				s.fail(v, http.StatusUnauthorized, "session.over")
				return
			}
			v.redirect(Root + "/sign-in?" + url.Values{"next": {next(r.URL.RequestURI())}}.Encode())
		default:
			s.fail(v, http.StatusServiceUnavailable, "session.away")
		}
	})
}

func (s *Server) fail(v *View, status int, word string) {
	s.render(v, status, "sentence", map[string]string{"Word": word})
}

func (s *Server) nothingHere(v *View) {
	// A page with a session keeps its frame.
	_ = s.auth.find(v, s.auth.cookie(v.R))
	s.fail(v, http.StatusNotFound, "refused.nothing")
}

type landingData struct {
	Base     string // the gateway's address as the browser knows it
	Health   string // ok, degraded, error, stopping
	SignIn   bool   // people may sign in at this host
	Snippets []snippets.Program
}

// landing is what a browser finds at "/". It shows nothing that unauthenticated clients may not know.
func (s *Server) landing(w http.ResponseWriter, r *http.Request) {
	v := s.view(w, r)
	known := s.knownHost(r)
	data := landingData{Base: s.base(r), Health: s.health(v), SignIn: known}
	data.Snippets = snippets.For(data.Base, snippets.Chat, "gpt-4o-mini", "Hello")[:3]
	if known {
		_ = s.auth.find(v, s.auth.cookie(r)) // a landing page needs no session
	}
	user := v.User
	v.User = User{} // no frame
	v.Landed = user.Role != ""
	s.render(v, http.StatusOK, "landing", data)
}

// base is the gateway's address as the browser knows it.
func (s *Server) base(r *http.Request) string {
	scheme := "http"
	if s.o.URL != nil && s.o.URL.Host == r.Host {
		scheme = s.o.URL.Scheme
	} else if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}

// health is the status of the gateway: ok, degraded, stopping or error.
func (s *Server) health(v *View) string {
	status, _ := s.o.Ready(v.R.Context())
	switch status {
	case "ok", "degraded", "stopping":
		return status
	default:
		return "error"
	}
}
