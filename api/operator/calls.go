package operator

import (
	"context"

	"modelrelay/api/logs"
)

// CallName identifies one call.
type CallName struct {
	ID string `path:"id" doc:"Any of the call's ids"`
}

// ListCalls returns a page of the calls of all tokens, the newest first. The query may have a token's id or name.
func (s *Service) ListCalls(ctx context.Context, by Actor, in *logs.Query) (list logs.List, err error) {
	if err := reads(by, nil); err != nil {
		return list, err
	}
	query := *in
	if query.Token, err = s.TokenID(ctx, in.Token); err != nil {
		return list, err
	}
	return s.Logs.All().List(ctx, query)
}

// Call returns a call.
func (s *Service) Call(ctx context.Context, by Actor, in *CallName) (logs.Call, error) {
	if err := reads(by, nil); err != nil {
		return logs.Call{}, err
	}
	return s.Logs.All().Find(ctx, in.ID)
}

// Traffic returns sums of the traffic of the last 26 hours.
func (s *Service) Traffic(ctx context.Context, by Actor, in *logs.TrafficQuery) (logs.TrafficList, error) {
	if err := reads(by, nil); err != nil {
		return logs.TrafficList{}, err
	}
	return s.Logs.ReadTraffic(ctx, in)
}
