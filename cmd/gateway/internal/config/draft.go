package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"modelrelay/providers"
)

// ChannelDraft is an entry of channels that the file does not have yet. The entry names the variable of the environment that
// holds its key, and no key.
type ChannelDraft struct {
	Name, Vendor, BaseURL string
	Models                map[string]string // public name: upstream name; "": the same
	Groups                []string          // none: the default one
	Priority, Weight      int
	MaxJobs, MaxCalls     int
	Variable              string // "": made of the name
}

// Drafted is a draft that the file could have.
type Drafted struct {
	Channel Channel
	// YAML is the section channels with the entry alone.
	YAML string
	// Variable is the one that the entry names.
	Variable string
	// Warnings are what an operator may not want of it.
	Warnings []Problem
}

// draftAt is the key of the entry in the text of a draft.
const draftAt = "channels[0]"

// DraftChannel writes the entry, reads it back as the file is read, and looks at it beside the channels of the configuration.
// The problems' keys are those of the entry, such as base_url. secret is the value of its key; "": nobody knows it, and it is not
// checked. Nothing of the environment and no file is read, whatever the texts of the draft are.
func (c Config) DraftChannel(d ChannelDraft, secret providers.Secret, vendors providers.Catalog) (Drafted, []Problem) {
	if d.Variable == "" {
		d.Variable = variableOf(d.Name)
	}
	if !isVariable(d.Variable) || d.Variable == secret.Reveal() { // what was typed may be a key, and is not repeated
		return Drafted{}, []Problem{{Key: "variable", Message: "wants the name of an environment variable: letters, digits and _, no digit first"}}
	}
	readBy := vendors
	if secret == "" {
		secret = "unknown"
		readBy = maps.Clone(vendors)
		if vendor, known := readBy[d.Vendor]; known {
			vendor.CheckKey = nil
			readBy[d.Vendor] = vendor
		}
	}
	text := d.yaml()
	own := func(name string) (string, bool) { return secret.Reveal(), name == d.Variable }
	cfg, err := Parse("draft", []byte(text), own, readBy)
	if refused := (*Error)(nil); errors.As(err, &refused) {
		return Drafted{}, ofDraft(refused.Problems)
	}
	if slices.ContainsFunc(c.Channels, func(other Channel) bool { return other.Name == d.Name }) {
		return Drafted{}, []Problem{{Key: "name", Message: fmt.Sprintf("%q is the name of a channel that the file has", d.Name)}}
	}
	return Drafted{Channel: cfg.Channels[0], YAML: text, Variable: d.Variable, Warnings: c.warnDraft(cfg.Channels[0], vendors)}, nil
}

// ofDraft are problems with keys of the entry.
func ofDraft(problems []Problem) []Problem {
	found := make([]Problem, len(problems))
	for i, problem := range problems {
		problem.Key = strings.TrimPrefix(strings.TrimPrefix(problem.Key, draftAt), ".")
		if strings.HasPrefix(problem.Key, "keys") {
			problem.Key = "key"
		}
		found[i] = Problem{Key: problem.Key, Message: problem.Message}
	}
	return found
}

// warnDraft is what the channel would bring with it that its operator may not want.
func (c Config) warnDraft(channel Channel, vendors providers.Catalog) []Problem {
	var warnings []Problem
	known := c.GroupNames()
	for _, group := range channel.Groups {
		if !slices.Contains(known, group) {
			warnings = append(warnings, Problem{
				Message: fmt.Sprintf("The group %q is new: nothing in the file names it, and tokens of other groups do not reach this channel.", group),
				Code:    "draft.group", Values: map[string]string{"group": group},
			})
		}
	}
	with := c
	with.Channels = append(slices.Clone(c.Channels), channel)
	before, free := LinesOf(c.Warnings(vendors)), c.unpriced()
	added := &validator{problems: warnings}
	for _, warning := range with.Warnings(vendors) {
		switch {
		case warning.Code == "config.unpriced": // not those of other channels once more
			warnUnpriced(added, slices.DeleteFunc(with.unpriced(), func(model string) bool { return slices.Contains(free, model) }))
		case !slices.Contains(before, warning.String()):
			added.problems = append(added.problems, warning)
		}
	}
	return added.problems
}

// variableOf makes the name of a variable of a channel's.
func variableOf(channel string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(channel))
	if name = strings.Trim(name, "_"); name == "" || name[0] <= '9' {
		name = "CHANNEL_" + name
	}
	return strings.TrimSuffix(name, "_") + "_API_KEY"
}

// yaml writes the section channels with the entry alone. What the file takes for absent keys is left out.
func (d ChannelDraft) yaml() string {
	var b strings.Builder
	b.WriteString("channels:\n  - name: " + scalar(d.Name) + "\n")
	field := func(key, value string) { b.WriteString("    " + key + ": " + value + "\n") }
	field("vendor", scalar(d.Vendor))
	if d.BaseURL != "" {
		field("base_url", quote(escape(d.BaseURL)))
	}
	field("keys", `["${`+d.Variable+`}"]`)
	models := make([]string, 0, len(d.Models))
	for _, public := range slices.Sorted(maps.Keys(d.Models)) {
		entry := quote(public) + ": " // a name is taken as it is
		if upstream := d.Models[public]; upstream != "" {
			entry += quote(escape(upstream))
		}
		models = append(models, entry)
	}
	field("models", "{"+strings.Join(models, ", ")+"}")
	if len(d.Groups) > 0 {
		groups := make([]string, len(d.Groups))
		for i, group := range d.Groups {
			groups[i] = quote(escape(group))
		}
		field("groups", "["+strings.Join(groups, ", ")+"]")
	}
	for _, number := range []struct {
		key           string
		value, absent int
	}{{"priority", d.Priority, 0}, {"weight", d.Weight, 1}, {"max_jobs", d.MaxJobs, 0}, {"max_calls", d.MaxCalls, 0}} {
		if number.value != number.absent {
			field(number.key, fmt.Sprint(number.value))
		}
	}
	return b.String()
}

// escape lets a text stand for itself where ${ begins the name of a variable.
func escape(text string) string { return strings.ReplaceAll(text, "${", "$${") }

// quote writes a text as YAML reads it between double quotes. Whatever is no letter, mark, number, sign or plain space is escaped:
// YAML refuses most such characters as they are, and takes U+0085, U+2028 and U+2029 for the end of a line. The escapes of Go's
// quotes are YAML's as well, but those of bytes that are no UTF-8.
func quote(text string) string { return strconv.Quote(strings.ToValidUTF8(text, "\ufffd")) }

// scalar writes a text without quotes where YAML takes it for nothing else.
func scalar(text string) string {
	plain := text != "" && text[0] >= 'a' && text[0] <= 'z' && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, text)
	for _, r := range text {
		plain = plain && (r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}
	if plain {
		return text
	}
	return quote(escape(text))
}
