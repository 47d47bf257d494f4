package console

import (
	"errors"
	"net/http"
	"strings"
)

type youData struct {
	Sessions []Session
	This     string
}

// youPage is about who has signed in: their sessions, and how they want to see the console.
func youPage() page {
	mine := everybody()
	return page{
		name: "you", path: "/you", roles: mine, key: "u",
		show: func(v *View) (any, error) {
			list, err := v.s.o.Sessions.List(v.R.Context(), v.Who.Kind, v.Who.Owner)
			if errors.Is(err, ErrAway) {
				return nil, &Problem{Status: http.StatusServiceUnavailable, Message: v.T("session.away")}
			}
			return youData{Sessions: list, This: v.Session.ID}, err
		},
		acts: map[string]act{
			"end": {roles: mine, do: func(v *View) (string, any, error) {
				return Root + "/you?done=ended", nil, v.s.o.Sessions.End(v.R.Context(), v.Who.Kind, v.Who.Owner, v.Form("session"))
			}},
			"everywhere": {roles: mine, do: func(v *View) (string, any, error) {
				v.s.clearCookie(v)
				return Root + "/sign-in", nil, v.s.o.Sessions.EndAll(v.R.Context(), v.Who.Kind, v.Who.Owner)
			}},
		},
	}
}

// Browser is a user agent as people call it: the browser with its version, and the system. Of one that is not known it is the
// beginning.
func (v *View) Browser(agent string) string {
	name := cut(agent, 40)
	for _, known := range []struct{ mark, name string }{{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Version/", "Safari"}} {
		if _, rest, ok := strings.Cut(agent, known.mark); ok {
			version, _, _ := strings.Cut(rest, ".")
			name = known.name + " " + cut(version, 8)
			break
		}
	}
	for _, system := range []struct{ mark, name string }{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS", "macOS"}, {"Linux", "Linux"}} {
		if strings.Contains(agent, system.mark) {
			return name + " · " + system.name
		}
	}
	if name == "" {
		return v.T("you.agent.none")
	}
	return name
}
