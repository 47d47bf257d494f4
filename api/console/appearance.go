package console

import (
	"net/http"
	"net/url"

	"modelrelay/api/console/words"
)

// Appearance has the settings of the console in a browser.
type Appearance struct {
	lang   string // of the pages
	chosen choice
}

// choice has the values of the cookie; "": not chosen.
type choice struct{ lang, theme, zone, keys string }

// appearanceCookie contains no secret and no right, so it may be set for all paths, including the landing page.
const appearanceCookie = "relay-appearance"

func appearanceOf(r *http.Request) Appearance {
	var chosen choice
	if c, err := r.Cookie(appearanceCookie); err == nil {
		q, _ := url.ParseQuery(c.Value) // a malformed cookie has no choices
		chosen = choice{lang: q.Get("l"), theme: q.Get("t"), zone: cut(q.Get("z"), 64), keys: q.Get("k")}
	}
	return Appearance{lang: words.Preferred(r, chosen.lang), chosen: chosen}
}

// setAppearance stores a choice in the browser, and redirects to the page of the form.
func (s *Server) setAppearance(v *View) {
	v.R.Body = http.MaxBytesReader(v.W, v.R.Body, maxEntry)
	_ = v.R.ParseForm() // a body that does not arrive changes nothing
	chosen := v.Appearance.chosen
	values := url.Values{"l": {chosen.lang}, "t": {chosen.theme}, "z": {chosen.zone}, "k": {chosen.keys}}
	for field, key := range map[string]string{"lang": "l", "theme": "t", "zone": "z", "keys": "k"} {
		if v.R.PostForm.Has(field) { //nolint:forbidigo // a request's form, not the client's function
			values.Set(key, cut(v.R.PostFormValue(field), 64))
		}
	}
	http.SetCookie(v.W, &http.Cookie{ //nolint:gosec // Secure if the console uses https
		Name: appearanceCookie, Value: values.Encode(), Path: "/", MaxAge: 365 * 24 * 60 * 60, HttpOnly: true, Secure: s.secure() &&
			s.knownHost(v.R), SameSite: http.SameSiteStrictMode,
	})
	v.redirect(back(v.R.PostFormValue("next")))
}

// back is next, but also permits the sign-in and the landing page, which have the choices too.
func back(to string) string {
	if to == Root+"/sign-in" || to == "/" {
		return to
	}
	return next(to)
}

// Lang returns the language of the page.
func (a Appearance) Lang() string {
	if a.lang == "zh" {
		return "zh-Hans"
	}
	return a.lang
}

// Theme returns light, dark, or "" for the system's.
func (a Appearance) Theme() string {
	if a.chosen.theme == "light" || a.chosen.theme == "dark" {
		return a.chosen.theme
	}
	return ""
}

// Zone returns the chosen time zone, "" for the browser's.
func (a Appearance) Zone() string { return a.chosen.zone }

// Keys reports whether single letters are shortcuts.
func (a Appearance) Keys() bool { return a.chosen.keys != "off" }
