package form_test

import (
	"regexp"
	"strings"
	"testing"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

func TestToolName(t *testing.T) {
	t.Parallel()
	openAI := form.NameRule{Max: 64}
	gemini := form.NameRule{Max: 128, Also: ".:", Letter: true}
	long := strings.Repeat("a", 65)
	for _, test := range []struct {
		name string
		rule form.NameRule
		want string // a pattern
	}{
		{"get_weather-2", openAI, `^get_weather-2$`},
		{"Bash", openAI, `^Bash$`},
		{long[:64], openAI, `^a{64}$`},
		{long, openAI, `^a{57}_[0-9a-f]{6}$`},
		{"mcp.files:read", openAI, `^mcpfilesread_[0-9a-f]{6}$`},
		{"mcp.files:read", gemini, `^mcp\.files:read$`},
		{"3d", openAI, `^3d$`},
		{"3d", gemini, `^_3d_[0-9a-f]{6}$`},
		{"-a", gemini, `^_-a_[0-9a-f]{6}$`},
		{"天気", openAI, `^_[0-9a-f]{6}$`},
		{"天気", gemini, `^__[0-9a-f]{6}$`},
		{"", openAI, `^_[0-9a-f]{6}$`},
	} {
		p := new(form.Prompt)
		got := p.ToolName(test.name, test.rule)
		if !regexp.MustCompile(test.want).MatchString(got) {
			t.Errorf("%q: got %q, want %s", test.name, got, test.want)
		}
		if again := p.ToolName(test.name, test.rule); again != got {
			t.Errorf("%q: got %q, then %q", test.name, got, again)
		}
		if got == test.name && p.Renamed != nil || got != test.name && p.Renamed[got] != test.name {
			t.Errorf("%q: remembered as %v", test.name, p.Renamed)
		}
	}
}

func TestToolNamesStayApart(t *testing.T) {
	t.Parallel()
	p := new(form.Prompt)
	rule := form.NameRule{Max: 64}
	if a, b := p.ToolName("a.b", rule), p.ToolName("ab.", rule); a == b || len(p.Renamed) != 2 {
		t.Errorf("both are %s", a)
	}
}

func TestCallID(t *testing.T) {
	t.Parallel()
	short := func(id string) bool { return id != "" && len(id) <= 40 }
	if got := form.CallID("toolu_01", short); got != "toolu_01" {
		t.Errorf("got %s", got)
	}
	long := strings.Repeat("x", 41)
	got := form.CallID(long, short)
	if !regexp.MustCompile(`^call_[0-9A-Za-z]{22}$`).MatchString(got) || got != form.CallID(long, short) ||
		got == form.CallID(long+"y", short) {
		t.Errorf("got %s", got)
	}
}

func TestNewIDs(t *testing.T) {
	t.Parallel()
	a, b := form.NewCallID(), form.NewCallID()
	if !regexp.MustCompile(`^call_[0-9A-Za-z]{22}$`).MatchString(a) || a == b {
		t.Errorf("got %s and %s", a, b)
	}
	if got := form.NewID("msg_"); len(got) != 28 {
		t.Errorf("got %s", got)
	}
}

// TestUserID: the vendor refuses a longer one, 400 "string too long".
func TestUserID(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		user, want string
		whole      bool
	}{
		{`"me"`, `"me"`, true},
		{`"` + strings.Repeat("ü", 64) + `"`, `"` + strings.Repeat("ü", 64) + `"`, true},
		{`"` + strings.Repeat("x", 65) + `"`, "", false},
	} {
		got, whole := form.UserID(rawjson.Text(test.user))
		again, _ := form.UserID(rawjson.Text(test.user))
		if whole != test.whole || whole && string(got) != test.want || !whole && len(got) != 66 || string(got) != string(again) {
			t.Errorf("%s: got %s, %v", test.user, got, whole)
		}
	}
}
