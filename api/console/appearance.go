package console

import (
	"net/http"
	"net/url"

	"modelrelay/api/console/words"
)

// Appearance has the settings of the console in a browser.
type Appearance struct {
	lang   string     // of the pages
	chosen url.Values // the values of the cookie
	// Theme is light, dark, or "" for the system's. Zone is the time zone, "" for the browser's.
	Theme, Zone string
	// Keys: single letters are shortcuts.
	Keys bool
}

// appearanceCookie contains no secret and no right, so it may be set for all paths, including the landing page.
const appearanceCookie = "relay-appearance"

func appearanceOf(r *http.Request) Appearance {
	var chosen url.Values
	if c, err := r.Cookie(appearanceCookie); err == nil {
		chosen, _ = url.ParseQuery(c.Value) // a malformed cookie has no choices
	}
	a := Appearance{lang: words.Preferred(r, chosen.Get("l")), chosen: chosen, Zone: cut(chosen.Get("z"), 64), Keys: chosen.Get("k") != "off"}
	if theme := chosen.Get("t"); theme == "light" || theme == "dark" {
		a.Theme = theme
	}
	return a
}

// setAppearance stores a choice in the browser, and redirects to the page of the form.
func (s *Server) setAppearance(v *View) {
	v.R.Body = http.MaxBytesReader(v.W, v.R.Body, maxEntry)
	_ = v.R.ParseForm() // a body that does not arrive changes nothing
	values := make(url.Values)
	for field, key := range map[string]string{"lang": "l", "theme": "t", "zone": "z", "keys": "k"} {
		value := v.Appearance.chosen.Get(key)
		if v.R.PostForm.Has(field) { //nolint:forbidigo // a request's form, not the client's function
			value = v.R.PostFormValue(field)
		}
		values.Set(key, cut(value, 64))
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
