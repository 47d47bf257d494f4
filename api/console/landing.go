package console

import (
	"encoding/json"
	"net/http"
)

type landingData struct {
	Base     string // the gateway's address as the browser knows it
	Health   string // ok, degraded, error, stopping
	SignIn   bool   // people may sign in at this host
	Snippets []Snippet
}

// landing is what a browser finds at "/". It says nothing that a stranger may not know.
func (s *Server) landing(w http.ResponseWriter, r *http.Request) {
	v := s.view(w, r)
	known := s.knownHost(r)
	data := landingData{Base: s.base(r), Health: s.health(v), SignIn: known}
	data.Snippets = snippets(data.Base, snippetChat, "gpt-4o-mini", "Hello")[:3]
	if known {
		_ = s.find(v, s.cookie(r)) // nobody is fine
	}
	who := v.Who
	v.Who = Who{} // no frame
	v.landed = who.Role != ""
	s.render(v, http.StatusOK, "landing", data)
}

// Landed tells whether who looks at the landing page has signed in.
func (v *View) Landed() bool { return v.landed }

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

// health is the word that the gateway has for how it is.
func (s *Server) health(v *View) string {
	r, err := v.inside(v.R.Context(), Who{}, http.MethodGet, "/readyz", nil)
	if err != nil {
		return "error"
	}
	answer := &recorder{header: make(http.Header), most: maxAnswer}
	s.o.API.ServeHTTP(answer, r)
	var said struct{ Status string }
	if json.Unmarshal(answer.body.Bytes(), &said) != nil {
		return "error"
	}
	switch said.Status {
	case "ok", "degraded", "stopping":
		return said.Status
	default:
		return "error"
	}
}
