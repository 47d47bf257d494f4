// Package operator has the operators' actions, each a method of Service. HTTP, the console and the command line are thin layers over it: an
// action's role check, validation and audit entry are here, and its input and result are what they transmit. It must not know HTTP requests
// or the configuration file.
package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/console/words"
	"modelrelay/api/edge"
	"modelrelay/api/logs"
	"modelrelay/api/setup"
	"modelrelay/providers/pricing"
	"modelrelay/providers/router"
	"modelrelay/storage/audit"
	"modelrelay/storage/tokens"
)

// Actor performs an action.
type Actor struct {
	// Operator is the name and the role. The command line has the name audit.CLI, which no configured operator has.
	edge.Operator
	// From is the address of the request, or the host of the command; "" if unknown.
	From string
	// RequestID is the id of the request, "" for none.
	RequestID string
}

// Options are the dependencies of the actions. The caller owns them.
type Options struct {
	// Tokens has the client tokens.
	Tokens TokenStore
	// CheckToken returns a new token (was is nil), or a changed one, in the form to be stored. Its error is a *providers.Fault that names a
	// field.
	CheckToken func(was *tokens.Token, token tokens.Token) (tokens.Token, error)
	// Groups returns all groups by name.
	Groups func() map[string]GroupRules
	// Tasks has the tasks of all tokens and the deliveries of their ends.
	Tasks TaskStore
	// Ledger has the usage, Money what tokens with a budget have spent and reserved, Prices the prices of models.
	Ledger UsageReader
	Money  Settler
	Prices *pricing.List
	// Logs are the log of calls and the sums of traffic.
	Logs logs.Options
	// Router has the channels and the models of the configuration, Channels their health, and Tester tests a channel.
	Router   *router.Router
	Channels ChannelHealth
	Tester   ChannelTester
	// Durations has the usual durations of videos.
	Durations Durations
	// Checks are the checks of the setup. Version is the program's version.
	Checks  []setup.Check
	Version string
	// Audit records the actions of operators; nil: they are not recorded.
	Audit Auditor
}

// Service performs the actions of operators. It is safe for concurrent use.
type Service struct {
	Options

	texts words.Texts
	uses  modelUses
	setup lastSetup
}

// New returns a service. It starts no goroutine.
func New(o Options) *Service { return &Service{Options: o, texts: words.Load()} }

// change performs an action with a change. It refuses an actor without the operator's role, and an input that violates the rules of its
// type. It records the action, even if it fails. do adds the subject and the changes to the entry.
func change[O any](
	ctx context.Context, s *Service, by Actor, what, subject string, in any, do func(entry *audit.Entry) (O, error),
) (out O, err error) {
	entry := audit.Entry{What: what, Subject: subject}
	if err = by.Permit(http.MethodPost); err == nil {
		err = check(in)
	}
	if err == nil {
		out, err = do(&entry)
	}
	s.record(ctx, by, entry, err)
	return out, err
}

// reads checks whether an actor may read, and whether the input violates the rules of its type.
func reads(by Actor, in any) error {
	if err := by.Permit(http.MethodGet); err != nil {
		return err
	}
	return check(in)
}

// record adds an actor's action to the audit log, with err if it failed.
func (s *Service) record(ctx context.Context, by Actor, entry audit.Entry, err error) {
	if s.Audit == nil {
		return
	}
	entry.By, entry.Who, entry.From, entry.RequestID, entry.Outcome = audit.Operator, by.Name, by.From, by.RequestID, audit.Done
	if by.Name == string(audit.CLI) {
		entry.By = audit.CLI
	}
	if err != nil {
		entry.Outcome, entry.Reason, entry.Changes = audit.Refused, message(err), nil
	}
	s.Audit.Record(ctx, entry)
}

// check returns the fault of the first field of the body, or else of the query, that violates the rules in its tags.
func check(in any) error {
	if in == nil {
		return nil
	}
	value := reflect.Indirect(reflect.ValueOf(in))
	if body := value.FieldByName("Body"); body.IsValid() {
		if value = reflect.Indirect(body); !value.IsValid() {
			return nil // an absent body
		}
	}
	raw, err := json.Marshal(value.Interface())
	if err != nil {
		return fmt.Errorf("encode the input: %w", err)
	}
	var fields any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return fmt.Errorf("read the input: %w", err)
	}
	if errs := huma.NewModelValidator().Validate(value.Type(), fields); len(errs) > 0 {
		return edge.InvalidInput(errs)
	}
	return nil
}

// orNone returns an empty list for nil, so that JSON never has null.
func orNone[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
