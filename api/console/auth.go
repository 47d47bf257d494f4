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
	// secureCookie is the session's under https: no other host, path or plain connection can set or read it.
	secureCookie = "__Host-relay"
	// plainCookie is the session's on loopback without https.
	plainCookie = "relay"
	// maxKey is longer than any key.
	maxKey = 1 << 10
	// maxForm bounds what a form may send that has no bound of its own: it is held in memory.
	maxForm = 128 << 10
	// maxEntry bounds what a form may send that needs no session: a key, or a choice of language and theme.
	maxEntry = 8 << 10
	// mostAgent is how much of a browser's name is kept, in bytes.
	mostAgent = 120
	// linkLasts is how long a sign-in link that an operator makes for a token's holder works.
	linkLasts = 24 * time.Hour
)

// auth has the sessions, their cookies and the pages of the sign-in.
type auth struct{ s *Server }

// cookie is the session's secret in a request, "" for none.
func (a *auth) cookie(r *http.Request) string {
	name := plainCookie
	if a.s.secure() {
		name = secureCookie
	}
	if c, err := r.Cookie(name); err == nil {
		return c.Value
	}
	return ""
}

func (a *auth) setCookie(v *View, secret string) {
	c := &http.Cookie{Name: plainCookie, Value: secret, Path: Root, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if a.s.secure() {
		c.Name, c.Path, c.Secure = secureCookie, "/", true
	}
	if secret == "" {
		c.MaxAge = -1
	}
	http.SetCookie(v.W, c)
}

func (a *auth) clearCookie(v *View) {
	if a.cookie(v.R) != "" {
		a.setCookie(v, "")
	}
}

// find gives a view its session: storage.ErrNotFound if there is none, or its key is no longer the owner's.
func (a *auth) find(v *View, secret string) error {
	if secret == "" {
		return storage.ErrNotFound
	}
	session, err := a.s.o.Sessions.Find(v.R.Context(), secret)
	if err != nil {
		return err
	}
	user, err := a.s.o.Lookup(v.R.Context(), session.Kind, session.Owner)
	if err == nil && user.Fingerprint != session.Fingerprint {
		err = storage.ErrNotFound
	}
	if errors.Is(err, storage.ErrNotFound) {
		// The key is gone: so is what stood on it.
		_ = a.s.o.Sessions.End(v.R.Context(), session.Kind, session.Owner, session.ID)
	}
	if err != nil {
		return err
	}
	v.User, v.Session = user, session
	return nil
}

// begin starts a session of an owner in the view's browser. The session that the browser had has ended.
func (a *auth) begin(v *View, user User) error {
	ctx := v.R.Context()
	if old := a.cookie(v.R); old != "" {
		if before, err := a.s.o.Sessions.Find(ctx, old); err == nil {
			_ = a.s.o.Sessions.End(ctx, before.Kind, before.Owner, before.ID)
		}
	}
	secret, _, err := a.s.o.Sessions.Begin(ctx, sessions.Session{
		Kind: user.Kind, Owner: user.Owner, Fingerprint: user.Fingerprint, Agent: cut(v.R.UserAgent(), mostAgent), From: edge.Of(ctx).From(ctx),
	})
	if err != nil {
		return err
	}
	a.setCookie(v, secret)
	return nil
}

type signInData struct {
	Next   string
	Opened bool   // there is an operator
	Wrong  string // the word of what was wrong
	Wait   int    // seconds
}

func (a *auth) showSignIn(v *View) {
	if a.find(v, a.cookie(v.R)) == nil {
		v.redirect(next(v.R.URL.Query().Get("next")))
		return
	}
	a.s.render(v, http.StatusOK, "sign-in", signInData{Next: next(v.R.URL.Query().Get("next")), Opened: a.s.o.Opened()})
}

// signIn takes a key. What it refuses reads alike, whatever was wrong.
func (a *auth) signIn(v *View) {
	v.R.Body = http.MaxBytesReader(v.W, v.R.Body, maxEntry)
	data := signInData{Next: next(v.R.PostFormValue("next")), Opened: a.s.o.Opened()}
	key := strings.TrimSpace(v.R.PostFormValue("key"))
	if len(key) > maxKey {
		key = "" // as wrong as any other
	}
	user, err := a.s.o.Key(v.R, key)
	err = a.signedInBy(v, user, err)
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
	a.s.render(v, status, "sign-in", data)
}

// showLink shows a button, so that a preview of the link does not use it up.
func (a *auth) showLink(v *View) {
	user, err := a.linked(v, a.s.o.Sessions.Peek)
	if err != nil {
		a.stale(v, err)
		return
	}
	a.s.render(v, http.StatusOK, "enter", user)
}

// linked finds the owner of a link, whose code read looks up.
func (a *auth) linked(v *View, read func(ctx context.Context, code string) (sessions.Link, error)) (user User, err error) {
	link, err := read(v.R.Context(), v.R.PathValue("code"))
	if err == nil {
		user, err = a.s.o.Lookup(v.R.Context(), link.Kind, link.Owner)
	}
	return user, err
}

func (a *auth) useLink(v *View) {
	user, err := a.linked(v, a.s.o.Sessions.Take)
	if err = a.signedInBy(v, user, err); err != nil {
		a.stale(v, err)
		return
	}
	if user.Role == Holder {
		v.redirect(Root + holderHome)
		return
	}
	v.redirect(Root + "/setup")
}

// signedInBy begins the session of the owner of a key or a link; err is the error of finding the owner. It notes the attempt in
// the audit log, unless it is one too many: unauthenticated clients, and a holder that signs in without end, must not fill the log.
func (a *auth) signedInBy(v *View, user User, err error) error {
	if err == nil {
		err = a.begin(v, user)
	} else if errors.Is(err, storage.ErrNotFound) {
		if wait := a.s.o.Wrong(v.R); wait > 0 {
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
	watchWord = "get_task_content" // as /admin has it
)

// note records in the audit log what the console itself lets an owner do. refused is why it was not done, "" for done.
func (v *View) note(user User, what, subject, refused string) {
	if log := v.s.o.Operator.Audit; log != nil {
		x := edge.Of(v.R.Context())
		log.Record(v.R.Context(), audit.Entry{
			By: audit.Kind(cmp.Or(user.Kind, string(audit.Unauthenticated))), Who: user.Owner, What: what, Subject: subject, Reason: refused,
			From: x.From(v.R.Context()), RequestID: x.ID,
		})
	}
}

// reason is why a sign-in was refused, without what was sent.
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

func (a *auth) stale(v *View, err error) {
	if errors.Is(err, storage.ErrNotFound) {
		a.s.fail(v, http.StatusNotFound, "enter.stale")
		return
	}
	if _, tooMany := errors.AsType[*sessions.TooManyError](err); tooMany {
		a.s.fail(v, http.StatusTooManyRequests, "enter.wait")
		return
	}
	a.s.fail(v, http.StatusServiceUnavailable, "session.away")
}

func (a *auth) signOut(v *View) {
	if a.find(v, a.cookie(v.R)) == nil {
		if err := a.s.o.Sessions.End(v.R.Context(), v.Session.Kind, v.Session.Owner, v.Session.ID); err != nil {
			a.s.fail(v, http.StatusServiceUnavailable, "session.away")
			return
		}
		v.note(v.User, audit.SignOut, v.User.Name, "")
	}
	a.clearCookie(v)
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
