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

// TestWriteUser: the vendor refuses a longer one, 400 "string too long".
func TestWriteUser(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		user, want string
		changed    int
	}{
		{"", "", 0},
		{`""`, "", 0},
		{`"me"`, `"safety_identifier":"me"`, 0},
		{`"` + strings.Repeat("ü", 64) + `"`, `"safety_identifier":"` + strings.Repeat("ü", 64) + `"`, 0},
		{`"` + strings.Repeat("x", 65) + `"`, `"safety_identifier":"9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9"`, 1},
	} {
		var out form.Out
		var loss form.Loss
		p := &form.Prompt{User: rawjson.Text(test.user)}
		p.Fields[form.FieldUser] = "user"
		p.WriteUser(&out, &loss)
		if string(out.Bytes()) != test.want || len(loss.Changed) != test.changed {
			t.Errorf("%s: got %s, changed %q", test.user, out.Bytes(), loss.Changed)
		}
	}
}
