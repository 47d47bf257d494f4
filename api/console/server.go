// Package console is the gateway's user interface in a browser, for operators and for holders of a token. Its pages are templates over the
// results of packages operator and account, which check the permissions. Only scripts of pages call the API, inside the process. It must
// not import a format or a vendor.
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
	"modelrelay/api/console/words"
	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/storage"
	"modelrelay/storage/sessions"
	"modelrelay/storage/tokens"
)

// Root is the prefix of the console's paths.
const Root = "/console"

// The roles of a session.
const (
	// Operator may see and change everything.
	Operator = edge.RoleOperator
	// Viewer may see everything and change nothing.
	Viewer = edge.RoleViewer
	// Holder has one token, and may see the data of that token.
	Holder edge.Role = "holder"
)

// User identifies an operator or the holder of a token.
type User struct {
	// Kind is "operator" or "token", Owner the operator's name or the token's stable id, and Name the displayed name.
	Kind, Owner, Name string
	Role              edge.Role
	// Fingerprint identifies the key with which the owner signs in; it changes with the key.
	Fingerprint string
}

// Sessions stores the sessions of browsers; sessions.Store implements it. Errors are storage.ErrNotFound and storage.ErrUnavailable.
type Sessions interface {
	// Begin starts a session; secret is for the browser. It returns a *sessions.TooManyError for an owner with many new sessions.
	Begin(ctx context.Context, s sessions.Session) (secret string, begun sessions.Session, err error)
	Find(ctx context.Context, secret string) (sessions.Session, error)
	List(ctx context.Context, kind, owner string) ([]sessions.Session, error)
	End(ctx context.Context, kind, owner, id string) error
	EndAll(ctx context.Context, kind, owner string) error
	// Offer creates the code of a sign-in link, Peek returns its owner, and Take invalidates it.
	Offer(ctx context.Context, link sessions.Link, ttl time.Duration) (code string, err error)
	Peek(ctx context.Context, code string) (sessions.Link, error)
	Take(ctx context.Context, code string) (sessions.Link, error)
	// Once reports whether an owner sends a word for the first time. It may forget the oldest of many hundreds.
	Once(ctx context.Context, kind, owner, word string) (first bool, err error)
}

// Backend has what a console uses of its server.
type Backend struct {
	// API serves the whole API to requests of this process (edge.WithInternalCaller).
	API http.Handler
	// Account reads the data of a token.
	Account *account.Service
	// Ready returns the status of /readyz (ok, degraded, stopping or error), and the errors of the failed checks by name.
	Ready func(ctx context.Context) (status string, failed map[string]string)
}

// Options are the dependencies of a console. The caller owns them. All except URL, the texts and Log are required.
type Options struct {
	Backend

	// Operator performs the actions of operators.
	Operator *operator.Service
	// Token finds a token by its id, with the limits in force. The error is storage.ErrNotFound or storage.ErrUnavailable.
	Token func(ctx context.Context, id string) (*tokens.Token, error)
	// Key finds the owner of a request's key. The error is storage.ErrNotFound for a wrong key, or storage.ErrUnavailable.
	Key func(r *http.Request, key string) (User, error)
	// Wrong counts a wrong key or link for the request's network, and returns how long the network has to wait; 0 for the first ones.
	Wrong func(r *http.Request) time.Duration
	// Lookup finds the current state of an owner. The error is storage.ErrNotFound if the owner may no longer sign in.
	Lookup func(ctx context.Context, kind, owner string) (User, error)
	// Opened reports whether there is an operator. Without one, the sign-in page describes how to add one.
	Opened   func() bool
	Sessions Sessions
	// URL is the address at which people sign in; nil: only loopback.
	URL *url.URL
	// TraceURL is the address of a trace with {trace_id}; "" for none.
	TraceURL string
	// TemporalURL is the address of the Temporal UI, without a path; "" if unknown.
	TemporalURL string
	// Currency is the unit after amounts of money; "" for none.
	Currency string
	// Log records defects; nil: no log.
	Log *slog.Logger
}

// Server is the console's handler. It is safe for concurrent use and needs no Close.
type Server struct {
	o         Options
	words     words.Texts
	templates templates
	assets    *assets.Files
	pages     []page
	handler   http.Handler
}

// New returns a console. It panics if its texts or assets are invalid.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{o: o, words: words.Load(), assets: assets.Load(), pages: allPages()}
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

// routes lists all routes. A test has a table with the roles of each.
func (s *Server) routes() []route {
	list := []route{
		{"GET /{$}", http.HandlerFunc(s.landing)},
		{"GET " + Root + "/assets/", http.StripPrefix(Root+"/assets/", s.assets)},
		{"GET " + Root + "/sign-in", s.open(s.showSignIn)},
		{"POST " + Root + "/sign-in", s.open(s.signIn)},
		{"GET " + Root + "/enter/{code}", s.open(s.showLink)},
		{"POST " + Root + "/enter/{code}", s.open(s.useLink)},
		{"POST " + Root + "/sign-out", s.open(s.signOut)},
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
		route{Root, s.open(s.nothingHere)}, // another method
	)
}

// ServeHTTP serves Root, the paths below it, and "/".
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// policy is the Content-Security-Policy of every page. No page has an inline script, style or handler, and no script can create HTML.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// guard sets the headers of every page, and refuses requests for unknown hosts and cross-site requests.
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
		case !s.knownHost(r) && (r.Method != http.MethodPost || r.URL.Path != Root+"/appearance"): // forms of the landing page work at every host
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

// referrer returns the referrer policy: other sites must not see addresses of the console. Over plain http to another machine, browsers
// send no Sec-Fetch-Site, and without referrers the Origin of a form is "null". There the console's own site receives referrers, so that
// its forms are recognized.
func (s *Server) referrer(r *http.Request) string {
	if r.TLS != nil || loopback(r.Host) || s.secure() && s.knownHost(r) {
		return "no-referrer"
	}
	return "same-origin"
}

func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// knownHost reports whether people may sign in at the request's host.
func (s *Server) knownHost(r *http.Request) bool {
	if s.o.URL != nil {
		return strings.EqualFold(r.Host, s.o.URL.Host)
	}
	return loopback(r.Host)
}

// loopback reports whether a host, with or without a port, is this machine.
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

// open returns the handler of a page that requires no session.
func (s *Server) open(do func(v *View)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { do(s.view(w, r)) })
}

// signedIn returns the handler of a page that requires a session. Without one it redirects to the sign-in. A request from another site's
// link has no strict cookie, so its page is loaded again from here.
func (s *Server) signedIn(do func(v *View)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := s.view(w, r)
		if s.cookie(r) == "" && r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Site") == "cross-site" &&
			r.Header.Get("Sec-Fetch-Mode") == "navigate" {
			s.render(v, http.StatusOK, "again", nil)
			return
		}
		err := s.findSession(v)
		switch {
		case err == nil:
			do(v)
		case errors.Is(err, storage.ErrNotFound):
			s.clearCookie(v)
			if !safe(r.Method) || r.Header.Get("Sec-Fetch-Dest") == "empty" { // a script handles the status on its page
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
	// With a session, the page has the frame.
	_ = s.findSession(v)
	s.fail(v, http.StatusNotFound, "refused.nothing")
}

type landingData struct {
	Base     string // the gateway's address in the browser
	Health   string // ok, degraded, error, stopping
	SignIn   bool   // people may sign in at this host
	Landed   bool   // the browser has a session
	Snippets *program
}

// landing serves "/". It shows only what unauthenticated clients may know.
func (s *Server) landing(w http.ResponseWriter, r *http.Request) {
	v := s.view(w, r)
	known := s.knownHost(r)
	data := landingData{Base: s.base(r), SignIn: known}
	data.Health, _ = s.o.Ready(r.Context())
	data.Snippets = programFor(data.Base, createChat, usualChat, "Hello", false)
	if known {
		_ = s.findSession(v) // the landing page requires no session
	}
	data.Landed = v.User.Role != ""
	v.User = User{} // no frame
	s.render(v, http.StatusOK, "landing", data)
}

// base returns the gateway's address in the browser.
func (s *Server) base(r *http.Request) string {
	scheme := "http"
	if s.o.URL != nil && s.o.URL.Host == r.Host {
		scheme = s.o.URL.Scheme
	} else if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}
