package main

import (
	"fmt"

	"modelrelay/api/admin"
	"modelrelay/api/console/words"
	"modelrelay/cmd/gateway/internal/config"
)

// finding is one that English alone has.
func finding(status admin.SetupStatus, mend, message string) []admin.SetupFinding {
	return []admin.SetupFinding{{Status: status, Message: message, Mend: mend}}
}

// found is a finding whose sentence is the text finding.<code> of the console's words, in every language that these have, with values
// in place of their names: name, value, name, value.
func (s *setup) found(status admin.SetupStatus, mend, code string, pairs ...any) []admin.SetupFinding {
	return []admin.SetupFinding{findingOf(s.texts, status, mend, code, pairs...)}
}

// findingOf is setup.found without a setup. An error among the values adds a word for its reason.
func findingOf(texts words.Texts, status admin.SetupStatus, mend, code string, pairs ...any) admin.SetupFinding {
	f := admin.SetupFinding{Status: status, Message: texts.Say(words.Languages()[0], "finding."+code, pairs...), Code: code, Mend: mend}
	for i := 0; i+1 < len(pairs); i += 2 {
		if f.Values == nil {
			f.Values = make(map[string]string)
		}
		f.Values[fmt.Sprint(pairs[i])] = fmt.Sprint(pairs[i+1])
		if err, ok := pairs[i+1].(error); ok && admin.SetupReason(err) != "" {
			f.Values["reason"] = admin.SetupReason(err)
		}
	}
	return f
}

// warned are warnings of the configuration as findings.
func warned(warnings []config.Problem, mend string) []admin.SetupFinding {
	all := make([]admin.SetupFinding, len(warnings))
	for i, warning := range warnings {
		all[i] = admin.SetupFinding{Status: admin.SetupWarning, Message: warning.String(), Code: warning.Code, Values: warning.Values, Mend: mend}
	}
	return all
}

// fine is one with which nothing is to be done.
func (s *setup) fine(code string, pairs ...any) []admin.SetupFinding {
	return s.found(admin.SetupOK, "", code, pairs...)
}

// tried is what came of a channel's test.
func tried(status admin.SetupStatus, mend string, tested admin.ChannelTested) []admin.SetupFinding {
	return []admin.SetupFinding{{Status: status, Message: tested.Verdict, Code: tested.Code, Values: tested.Values, Mend: mend}}
}
