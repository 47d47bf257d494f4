package console

import (
	"net/http"
	"net/url"

	"modelrelay/api/console/words"
)

// Appearance is how a browser shows the console.
type Appearance struct {
	lang   string // of the pages
	chosen choice
}

// choice is what the cookie has; "" is nothing chosen.
type choice struct{ lang, theme, zone, keys string }

// appearanceCookie holds no secret and no right, so that it may be for all paths: the landing page is one of them.
const appearanceCookie = "relay-appearance"

func appearanceOf(r *http.Request) Appearance {
	var chosen choice
	if c, err := r.Cookie(appearanceCookie); err == nil {
		q, _ := url.ParseQuery(c.Value) // one that does not parse has chosen nothing
		chosen = choice{lang: q.Get("l"), theme: q.Get("t"), zone: cut(q.Get("z"), 64), keys: q.Get("k")}
	}
	return Appearance{lang: words.Preferred(r, chosen.lang), chosen: chosen}
}

// setAppearance stores a choice in the browser, and leads back to the page that it came from.
func (s *Server) setAppearance(v *View) {
	v.R.Body = http.MaxBytesReader(v.W, v.R.Body, maxEntry)
	_ = v.R.ParseForm() // what did not arrive changes nothing
	chosen := v.Appearance.chosen
	values := url.Values{"l": {chosen.lang}, "t": {chosen.theme}, "z": {chosen.zone}, "k": {chosen.keys}}
	for field, key := range map[string]string{"lang": "l", "theme": "t", "zone": "z", "keys": "k"} {
		if v.R.PostForm.Has(field) { //nolint:forbidigo // a request's form, not the client's function
			values.Set(key, cut(v.R.PostFormValue(field), 64))
		}
	}
	http.SetCookie(v.W, &http.Cookie{ //nolint:gosec // Secure wherever the console is reached by https
		Name: appearanceCookie, Value: values.Encode(), Path: "/", MaxAge: 365 * 24 * 60 * 60, HttpOnly: true, Secure: s.secure() &&
			s.knownHost(v.R), SameSite: http.SameSiteStrictMode,
	})
	v.redirect(back(v.R.PostFormValue("next")))
}

// back is next, and the sign-in and the landing page too, which have a choice of their own.
func back(to string) string {
	if to == Root+"/sign-in" || to == "/" {
		return to
	}
	return next(to)
}

// Lang is the language of the page.
func (a Appearance) Lang() string {
	if a.lang == "zh" {
		return "zh-Hans"
	}
	return a.lang
}

// Theme is light, dark, or "" for the system's.
func (a Appearance) Theme() string {
	if a.chosen.theme == "light" || a.chosen.theme == "dark" {
		return a.chosen.theme
	}
	return ""
}

// Zone is the chosen time zone, "" for the browser's.
func (a Appearance) Zone() string { return a.chosen.zone }

// Keys reports whether single letters are shortcuts.
func (a Appearance) Keys() bool { return a.chosen.keys != "off" }
