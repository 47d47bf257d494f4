package console

import (
	"errors"
	"net/http"

	"modelrelay/api/edge"
	"modelrelay/providers"
)

// Problem is the failure of a read or of an action, as pages show it.
type Problem struct {
	Status  int
	Message string
	// Param is the invalid field, "" for none.
	Param     string
	RequestID string
}

// Error implements error.
func (p *Problem) Error() string { return p.Message }

// Away reports that a service of the gateway does not answer.
func (p *Problem) Away() bool { return p.Status == http.StatusServiceUnavailable }

// Missing reports that the object does not exist.
func (p *Problem) Missing() bool { return p.Status == http.StatusNotFound }

// Changed reports that the object is not in the state that the action requires.
func (p *Problem) Changed() bool { return p.Status == http.StatusConflict }

// problem returns the failure in an error, nil for a defect.
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

// away returns the message of a failure, for a page that can be shown without the failed part. The error is that of a defect.
func (v *View) away(err error) (message string, defect error) {
	if p := v.problem(err); p != nil {
		return p.Message, nil //nolint:nilerr // the message has it
	}
	return "", err
}

// invalid returns the refusal of a form with an invalid field; field is "" for the whole form.
func invalid(field, message string) error {
	return &providers.Fault{Kind: providers.Invalid, Param: field, Message: message}
}

// message returns the text of an error in a list of results.
func message(err error) string { return providers.AsFault(err).Message }
