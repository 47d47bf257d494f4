package console

import (
	"errors"
	"net/http"

	"modelrelay/api/edge"
	"modelrelay/providers"
)

// Problem is the refusal of a read or of an action, as pages show it.
type Problem struct {
	Status  int
	Message string
	// Param is the field that is wrong, "" for none.
	Param     string
	RequestID string
}

// Error implements error.
func (p *Problem) Error() string { return p.Message }

// Away reports that a service that the gateway needs does not answer.
func (p *Problem) Away() bool { return p.Status == http.StatusServiceUnavailable }

// Missing reports that what was named does not exist.
func (p *Problem) Missing() bool { return p.Status == http.StatusNotFound }

// Changed reports that what was named is not in the state that the action needs.
func (p *Problem) Changed() bool { return p.Status == http.StatusConflict }

// problem returns the refusal in an error, nil for a defect.
func (v *View) problem(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	fault := providers.AsFault(err)
	if fault == nil || fault.Kind == providers.Internal {
		return nil
	}
	return &Problem{Status: edge.Status(fault.Kind), Message: fault.Message, Param: fault.Param, RequestID: edge.Of(v.R.Context()).AnswerID()}
}

// away returns the message of a refusal, for a page that can do without the part that was refused. The error is that of a defect.
func (v *View) away(err error) (message string, defect error) {
	if p := v.problem(err); p != nil {
		return p.Message, nil //nolint:nilerr // the message has it
	}
	return "", err
}

// invalid is the refusal of a form whose field has the name, "" for all of it.
func invalid(field, message string) error {
	return &providers.Fault{Kind: providers.Invalid, Param: field, Message: message}
}

// conflict is the refusal of an action on something that is not in the state for it.
func conflict(message string) error {
	return &providers.Fault{Kind: providers.Conflict, Message: message}
}

// message is what a page shows of an error, in a list of results.
func message(err error) string { return providers.AsFault(err).Message }
