package console

import (
	"net/http"
	"net/url"

	"modelrelay/api/console/words"
)

// Look is how somebody wants to see the console.
type Look struct {
	lang   string // what the pages are in
	chosen lookChoice
}

// lookChoice is what the cookie says; "" is nothing chosen.
type lookChoice struct{ lang, theme, zone, keys string }

// lookName is the cookie's. It holds no secret and no right, so that it may be for all paths: the landing page is one of them.
const lookName = "relay-appearance"

// lookOf is what a request wants.
func lookOf(r *http.Request) Look {
	var chosen lookChoice
	if c, err := r.Cookie(lookName); err == nil {
		q, _ := url.ParseQuery(c.Value) // one that does not parse has chosen nothing
		chosen = lookChoice{lang: q.Get("l"), theme: q.Get("t"), zone: cut(q.Get("z"), 64), keys: q.Get("k")}
	}
	return Look{lang: words.Preferred(r, chosen.lang), chosen: chosen}
}

// setLook notes how somebody wants to see the console, and leads back to where they were.
func (s *Server) setLook(v *View) {
	v.R.Body = http.MaxBytesReader(v.W, v.R.Body, maxEntry)
	_ = v.R.ParseForm() // what did not arrive changes nothing
	values := url.Values{"l": {v.Look.chosen.lang}, "t": {v.Look.chosen.theme}, "z": {v.Look.chosen.zone}, "k": {v.Look.chosen.keys}}
	for field, key := range map[string]string{"lang": "l", "theme": "t", "zone": "z", "keys": "k"} {
		if v.R.PostForm.Has(field) { //nolint:forbidigo // a request's form, not the client's function
			values.Set(key, cut(v.R.PostFormValue(field), 64))
		}
	}
	http.SetCookie(v.W, &http.Cookie{ //nolint:gosec // Secure wherever the console is reached by https
		Name: lookName, Value: values.Encode(), Path: "/", MaxAge: 365 * 24 * 60 * 60, HttpOnly: true, Secure: s.secure() && s.knownHost(v.R), SameSite: http.SameSiteStrictMode,
	})
	v.redirect(back(v.R.PostFormValue("next")))
}

// back is next, and the sign-in too, which setLook may lead to.
func back(to string) string {
	if to == Root+"/sign-in" || to == "/" {
		return to
	}
	return next(to)
}

// Lang is the language of the page.
func (l Look) Lang() string {
	if l.lang == "zh" {
		return "zh-Hans"
	}
	return l.lang
}

// Theme is light, dark, or "" for the system's.
func (l Look) Theme() string {
	if l.chosen.theme == "light" || l.chosen.theme == "dark" {
		return l.chosen.theme
	}
	return ""
}

// Zone is the chosen time zone, "" for the browser's.
func (l Look) Zone() string { return l.chosen.zone }

// Keys tells whether single letters are shortcuts.
func (l Look) Keys() bool { return l.chosen.keys != "off" }
