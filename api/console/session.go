package console

import (
	"errors"
	"net/http"
	"strings"
	"time"
)

const (
	// secureCookie is the session's under https: no other host, path or plain connection can set or read it.
	secureCookie = "__Host-relay"
	// plainCookie is the session's on loopback without https.
	plainCookie = "relay"
	// maxKey is longer than any key.
	maxKey = 1 << 10
	// maxForm bounds what a form may send that has no bound of its own: it is held in memory. A hundred chosen things are
	// less than a tenth of it.
	maxForm = 128 << 10
	// maxEntry bounds what a form may send that needs no session: a key, or how somebody wants to see the console.
	maxEntry = 8 << 10
	// mostAgent is how much of a browser's name is kept, in bytes.
	mostAgent = 120
	// linkLasts is how long a sign-in link that an operator makes for a token's holder works.
	linkLasts = 24 * time.Hour
)

// cookie is the session's secret in a request, "" for none.
func (s *Server) cookie(r *http.Request) string {
	name := plainCookie
	if s.secure() {
		name = secureCookie
	}
	if c, err := r.Cookie(name); err == nil {
		return c.Value
	}
	return ""
}

func (s *Server) setCookie(v *View, secret string) {
	c := &http.Cookie{Name: plainCookie, Value: secret, Path: Root, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if s.secure() {
		c.Name, c.Path, c.Secure = secureCookie, "/", true
	}
	if secret == "" {
		c.MaxAge = -1
	}
	http.SetCookie(v.W, c)
}

func (s *Server) clearCookie(v *View) {
	if s.cookie(v.R) != "" {
		s.setCookie(v, "")
	}
}

// find makes a view somebody's who has a session: ErrUnknown where there is none, or the key that it stands on is another.
func (s *Server) find(v *View, secret string) error {
	if secret == "" {
		return ErrUnknown
	}
	session, err := s.o.Sessions.Find(v.R.Context(), secret)
	if err != nil {
		return err
	}
	who, err := s.o.Lookup(v.R.Context(), session.Kind, session.Owner)
	if err == nil && who.Fingerprint != session.Fingerprint {
		err = ErrUnknown
	}
	if errors.Is(err, ErrUnknown) {
		// The key is gone: so is what stood on it.
		_ = s.o.Sessions.End(v.R.Context(), session.Kind, session.Owner, session.ID)
	}
	if err != nil {
		return err
	}
	v.Who, v.Session = who, session
	return nil
}

// begin starts a session of somebody in the view's browser; the one that it had is over.
func (s *Server) begin(v *View, who Who) error {
	ctx := v.R.Context()
	if old := s.cookie(v.R); old != "" {
		if before, err := s.o.Sessions.Find(ctx, old); err == nil {
			_ = s.o.Sessions.End(ctx, before.Kind, before.Owner, before.ID)
		}
	}
	secret, err := s.o.Sessions.Begin(ctx, Session{
		Kind: who.Kind, Owner: who.Owner, Fingerprint: who.Fingerprint, Agent: cut(v.R.UserAgent(), mostAgent), From: s.o.Source(v.R),
	})
	if err != nil {
		return err
	}
	s.setCookie(v, secret)
	return nil
}

// signInData is what the sign-in shows.
type signInData struct {
	Next   string
	Opened bool   // there is an operator
	Wrong  string // the word of what was wrong
	Wait   int    // seconds
}

func (s *Server) showSignIn(v *View) {
	if s.find(v, s.cookie(v.R)) == nil {
		v.redirect(next(v.R.URL.Query().Get("next")))
		return
	}
	s.render(v, http.StatusOK, "sign-in", signInData{Next: next(v.R.URL.Query().Get("next")), Opened: s.o.Opened()})
}

// signIn takes a key. What it refuses reads alike, whatever was wrong.
func (s *Server) signIn(v *View) {
	v.R.Body = http.MaxBytesReader(v.W, v.R.Body, maxEntry)
	data := signInData{Next: next(v.R.PostFormValue("next")), Opened: s.o.Opened()}
	key := strings.TrimSpace(v.R.PostFormValue("key"))
	if len(key) > maxKey {
		key = "" // as wrong as any other
	}
	who, err := s.o.Key(v.R, key)
	err = s.signedInBy(v, who, err)
	status, wait := http.StatusForbidden, (*WaitError)(nil)
	switch {
	case err == nil:
		v.redirect(data.Next)
		return
	case errors.As(err, &wait):
		status, data.Wrong, data.Wait = http.StatusTooManyRequests, "signin.wait", int(wait.For/time.Second)+1
	case errors.Is(err, ErrUnknown):
		data.Wrong = "signin.wrong"
	default:
		status, data.Wrong = http.StatusServiceUnavailable, "session.away"
	}
	s.render(v, status, "sign-in", data)
}

// showLink shows a button, so that a preview of the link does not use it up.
func (s *Server) showLink(v *View) {
	kind, owner, err := s.o.Sessions.Peek(v.R.Context(), v.R.PathValue("code"))
	var who Who
	if err == nil {
		who, err = s.o.Lookup(v.R.Context(), kind, owner)
	}
	if err != nil {
		s.stale(v, err)
		return
	}
	s.render(v, http.StatusOK, "enter", who)
}

func (s *Server) useLink(v *View) {
	kind, owner, err := s.o.Sessions.Take(v.R.Context(), v.R.PathValue("code"))
	var who Who
	if err == nil {
		who, err = s.o.Lookup(v.R.Context(), kind, owner)
	}
	if err = s.signedInBy(v, who, err); err != nil {
		s.stale(v, err)
		return
	}
	if who.Role == Holder {
		v.redirect(Root + holderHome)
		return
	}
	v.redirect(Root + "/setup")
}

// signedInBy begins the session of somebody whom a key or a link names; err is that of finding out. It notes the attempt in
// the audit log, unless it is one too many: strangers, and a holder who signs in without end, must not fill that.
func (s *Server) signedInBy(v *View, who Who, err error) error {
	if err == nil {
		err = s.begin(v, who)
	} else if errors.Is(err, ErrUnknown) {
		if wait := s.o.Wrong(v.R); wait > 0 {
			err = &WaitError{For: wait}
		}
	}
	if _, tooMany := errors.AsType[*WaitError](err); !tooMany {
		s.note(v, Act{Who: who, What: signInWord, Subject: who.Name, Refused: reason(err)})
	}
	return err
}

// Words of the audit log.
const (
	signInWord  = "sign_in"
	signOutWord = "sign_out"
	linkWord    = "make_sign_in_link"
	tryWord     = "try_as_token"
	watchWord   = "get_task_content" // as /admin has it
)

func (s *Server) note(v *View, act Act) {
	if s.o.Note != nil {
		s.o.Note(v.R, act)
	}
}

// reason is why somebody was refused, without what they sent.
func reason(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrUnknown):
		return "unknown key or link"
	default:
		return "not to be told at the moment"
	}
}

// stale answers a link that does not work.
func (s *Server) stale(v *View, err error) {
	if errors.Is(err, ErrUnknown) {
		s.fail(v, http.StatusNotFound, "enter.stale")
		return
	}
	if _, tooMany := errors.AsType[*WaitError](err); tooMany {
		s.fail(v, http.StatusTooManyRequests, "enter.wait")
		return
	}
	s.fail(v, http.StatusServiceUnavailable, "session.away")
}

func (s *Server) signOut(v *View) {
	if s.find(v, s.cookie(v.R)) == nil {
		if err := s.o.Sessions.End(v.R.Context(), v.Session.Kind, v.Session.Owner, v.Session.ID); err != nil {
			s.fail(v, http.StatusServiceUnavailable, "session.away")
			return
		}
		s.note(v, Act{Who: v.Who, What: signOutWord, Subject: v.Who.Name})
	}
	s.clearCookie(v)
	v.redirect(Root + "/sign-in")
}

// next is a page of the console to go on to, the first one where it is none.
func next(to string) string {
	if to != Root && !strings.HasPrefix(to, Root+"/") && !strings.HasPrefix(to, Root+"?") || strings.ContainsAny(to, "\\\r\n") ||
		strings.HasPrefix(to, Root+"/sign-") || strings.HasPrefix(to, Root+"/enter") || strings.Contains(to, "//") || strings.Contains(to, "..") {
		return Root
	}
	return to
}

// cut shortens a text to so many bytes, at a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
