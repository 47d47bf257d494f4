package providers

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// ReadAnswer reads the body of a 2xx answer, at most limit bytes. The caller closes it. One that ends early is a *Fault:
// by the caller's own will where the context says so, else the upstream's, and then what became of the request is unknown.
func ReadAnswer(ctx context.Context, body io.Reader, limit int64) ([]byte, error) {
	read, err := io.ReadAll(io.LimitReader(body, limit))
	if err == nil {
		return read, nil
	}
	return nil, brokenOff(ctx, err)
}

// brokenOff is the fault of a body that ended early.
func brokenOff(ctx context.Context, err error) *Fault {
	cause := context.Cause(ctx)
	if cause == nil {
		return BrokenAnswer("cut off", err)
	}
	fault := *AsFault(cause)
	if fault.Kind == Timeout {
		fault.Blame = BlameChannel
	}
	fault.Err = errors.Join(cause, err)
	return &fault
}

// BrokenAnswer is the fault of a 2xx answer that makes no sense; what says in which way, for the log. What became of the
// request is unknown.
func BrokenAnswer(what string, err error) *Fault {
	return &Fault{
		Kind: Upstream, Message: "The upstream's answer is broken.", Blame: BlameChannel,
		Err: errors.Join(fmt.Errorf("broken answer: %s", what), err),
	}
}
