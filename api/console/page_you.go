package console

import "modelrelay/storage/sessions"

type youData struct {
	Sessions []sessions.Session
	This     string
}

// youPage shows the sessions of the session's owner, and the settings of the console's appearance.
func youPage() page {
	roles := allRoles()
	return page{
		name: "you", path: "/you", roles: roles,
		show: func(v *View) (any, error) {
			list, err := v.s.o.Sessions.List(v.R.Context(), v.User.Kind, v.User.Owner)
			return youData{Sessions: list, This: v.Session.ID}, err
		},
		acts: map[string]act{
			"end": {roles: roles, do: func(v *View) (string, any, error) {
				return Root + "/you?done=ended", nil, v.s.o.Sessions.End(v.R.Context(), v.User.Kind, v.User.Owner, v.Form.Value("session"))
			}},
			"everywhere": {roles: roles, do: func(v *View) (string, any, error) {
				v.s.clearCookie(v)
				return Root + "/sign-in", nil, v.s.o.Sessions.EndAll(v.R.Context(), v.User.Kind, v.User.Owner)
			}},
		},
	}
}
