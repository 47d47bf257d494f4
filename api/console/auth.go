package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"modelrelay/api/edge"
	"modelrelay/storage"
	"modelrelay/storage/audit"
	"modelrelay/storage/sessions"
)

const (
	// secureCookie is the name of the session's cookie under https: no other host, path or plain connection can set or read it.
	secureCookie = "__Host-relay"
	// plainCookie is the name of the session's cookie on loopback without https.
	plainCookie = "relay"
	// maxKey is longer than any key, in bytes.
	maxKey = 1 << 10
	// maxForm is the default maximum size of a form in bytes. Forms are held in memory.
	maxForm = 128 << 10
	// maxEntry is the maximum size, in bytes, of a form that requires no session: a key, or a choice of language and theme.
	maxEntry = 8 << 10
	// mostAgent is the maximum length of a stored browser name, in bytes.
	mostAgent = 120
	// linkTTL is how long a sign-in link for a token's holder is valid.
	linkTTL = 24 * time.Hour
)

// cookie returns the session's secret in a request, "" for none.
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

// findSession finds the session of a view. The error is storage.ErrNotFound if there is none, or if the owner's key was replaced.
func (s *Server) findSession(v *View) error {
	secret := s.cookie(v.R)
	if secret == "" {
		return storage.ErrNotFound
	}
	session, err := s.o.Sessions.Find(v.R.Context(), secret)
	if err != nil {
		return err
	}
	user, err := s.o.Lookup(v.R.Context(), session.Kind, session.Owner)
	if err == nil && user.Fingerprint != session.Fingerprint {
		err = storage.ErrNotFound
	}
	if errors.Is(err, storage.ErrNotFound) {
		// The owner's key was replaced, so the session ends.
		_ = s.o.Sessions.End(v.R.Context(), session.Kind, session.Owner, session.ID)
	}
	if err != nil {
		return err
	}
	v.User, v.Session = user, session
	return nil
}

// beginSession starts a session of an owner in the view's browser. It ends the browser's previous session.
func (s *Server) beginSession(v *View, user User) error {
	ctx := v.R.Context()
	if old := s.cookie(v.R); old != "" {
		if before, err := s.o.Sessions.Find(ctx, old); err == nil {
			_ = s.o.Sessions.End(ctx, before.Kind, before.Owner, before.ID)
		}
	}
	secret, _, err := s.o.Sessions.Begin(ctx, sessions.Session{
		Kind: user.Kind, Owner: user.Owner, Fingerprint: user.Fingerprint, Agent: cut(v.R.UserAgent(), mostAgent), From: edge.Of(ctx).From(ctx),
	})
	if err != nil {
		return err
	}
	s.setCookie(v, secret)
	return nil
}

type signInData struct {
	Next   string
	Opened bool   // there is an operator
	Wrong  string // the key of the reason
	Wait   int    // seconds
}

func (s *Server) showSignIn(v *View) {
	if s.findSession(v) == nil {
		v.redirect(next(v.R.URL.Query().Get("next")))
		return
	}
	s.render(v, http.StatusOK, "sign-in", signInData{Next: next(v.R.URL.Query().Get("next")), Opened: s.o.Opened()})
}

// signIn checks a key. All refusals have the same text.
func (s *Server) signIn(v *View) {
	v.R.Body = http.MaxBytesReader(v.W, v.R.Body, maxEntry)
	data := signInData{Next: next(v.R.PostFormValue("next")), Opened: s.o.Opened()}
	key := strings.TrimSpace(v.R.PostFormValue("key"))
	if len(key) > maxKey {
		key = "" // refused as any wrong key
	}
	user, err := s.o.Key(v.R, key)
	err = s.signedInBy(v, user, err)
	status, wait := http.StatusForbidden, (*sessions.TooManyError)(nil)
	switch {
	case err == nil:
		v.redirect(data.Next)
		return
	case errors.As(err, &wait):
		status, data.Wrong, data.Wait = http.StatusTooManyRequests, "signin.wait", int(wait.For/time.Second)+1
	case errors.Is(err, storage.ErrNotFound):
		data.Wrong = "signin.wrong"
	default:
		status, data.Wrong = http.StatusServiceUnavailable, "session.away"
	}
	s.render(v, status, "sign-in", data)
}

// showLink shows a button, so that a preview of the link does not invalidate it.
func (s *Server) showLink(v *View) {
	user, err := s.linked(v, s.o.Sessions.Peek)
	if err != nil {
		s.stale(v, err)
		return
	}
	s.render(v, http.StatusOK, "enter", user)
}

// linked finds the owner of a link by its code, with read.
func (s *Server) linked(v *View, read func(ctx context.Context, code string) (sessions.Link, error)) (user User, err error) {
	link, err := read(v.R.Context(), v.R.PathValue("code"))
	if err == nil {
		user, err = s.o.Lookup(v.R.Context(), link.Kind, link.Owner)
	}
	return user, err
}

func (s *Server) useLink(v *View) {
	user, err := s.linked(v, s.o.Sessions.Take)
	if err = s.signedInBy(v, user, err); err != nil {
		s.stale(v, err)
		return
	}
	if user.Role == Holder {
		v.redirect(Root)
		return
	}
	v.redirect(Root + "/setup")
}

// signedInBy begins the session of the owner of a key or a link; err is the error of finding the owner. It records the attempt in the audit
// log, but not above a rate: unauthenticated clients and a holder with endless sign-ins must not fill the log.
func (s *Server) signedInBy(v *View, user User, err error) error {
	if err == nil {
		err = s.beginSession(v, user)
	} else if errors.Is(err, storage.ErrNotFound) {
		if wait := s.o.Wrong(v.R); wait > 0 {
			err = &sessions.TooManyError{For: wait}
		}
	}
	if _, tooMany := errors.AsType[*sessions.TooManyError](err); !tooMany {
		v.note(user, audit.SignIn, user.Name, reason(err))
	}
	return err
}

const (
	linkWord  = "make_sign_in_link"
	watchWord = "get_task_content" // as in /admin
)

// note records an action of the console itself in the audit log. refused is why it failed, "" for success.
func (v *View) note(user User, what, subject, refused string) {
	if log := v.s.o.Operator.Audit; log != nil {
		x := edge.Of(v.R.Context())
		log.Record(v.R.Context(), audit.Entry{
			By: audit.Kind(cmp.Or(user.Kind, string(audit.Unauthenticated))), Who: user.Owner, What: what, Subject: subject, Reason: refused,
			From: x.From(v.R.Context()), RequestID: x.ID,
		})
	}
}

// reason returns why a sign-in was refused, without the client's input.
func reason(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, storage.ErrNotFound):
		return "unknown key or link"
	default:
		return "the store does not answer"
	}
}

func (s *Server) stale(v *View, err error) {
	if errors.Is(err, storage.ErrNotFound) {
		s.fail(v, http.StatusNotFound, "enter.stale")
		return
	}
	if _, tooMany := errors.AsType[*sessions.TooManyError](err); tooMany {
		s.fail(v, http.StatusTooManyRequests, "enter.wait")
		return
	}
	s.fail(v, http.StatusServiceUnavailable, "session.away")
}

func (s *Server) signOut(v *View) {
	if s.findSession(v) == nil {
		if err := s.o.Sessions.End(v.R.Context(), v.Session.Kind, v.Session.Owner, v.Session.ID); err != nil {
			s.fail(v, http.StatusServiceUnavailable, "session.away")
			return
		}
		v.note(v.User, audit.SignOut, v.User.Name, "")
	}
	s.clearCookie(v)
	v.redirect(Root + "/sign-in")
}

// next returns the path to redirect to, or the first page if it is not a page of the console.
func next(to string) string {
	if to != Root && !strings.HasPrefix(to, Root+"/") && !strings.HasPrefix(to, Root+"?") || strings.ContainsAny(to, "\\\r\n") ||
		strings.HasPrefix(to, Root+"/sign-") || strings.HasPrefix(to, Root+"/enter") || strings.Contains(to, "//") || strings.Contains(to, "..") {
		return Root
	}
	return to
}

// cut shortens a text to most bytes, at the boundary of a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
