package tasks

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"modelrelay/providers"
)

const (
	// startPatience bounds the retries of a start that the namespace's rate limit refuses: a burst of a second passes unnoticed.
	startPatience = 2 * time.Second
	// exhaustedRetry is the Retry-After of such a create.
	exhaustedRetry = 5 * time.Second
	// connectPatience bounds the wait of an operator's request for a connection to Temporal: a restarting server is back in two seconds.
	connectPatience = 2 * time.Second
)

// errExhausted is a start whose every try the namespace refused because of its rate or load. The task certainly did not begin.
var errExhausted = errors.New("the namespace takes no more starts now")

// startTries counts the outcomes of the tries of one start, of which the SDK returns only the last error, if any.
type startTries struct {
	began time.Time
	// refused counts refusals because of rate or load; unclear is any other outcome, including success.
	refused int
	unclear bool
}

// exhausted reports whether rate or load certainly prevented the start.
func (t *startTries) exhausted() bool { return t.refused > 0 && !t.unclear }

type startTriesKey struct{}

// CountRefusals is a gRPC interceptor inside the SDK's retries. It counts the outcomes of a start, and ends its tries after startPatience.
func CountRefusals(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	tries, _ := ctx.Value(startTriesKey{}).(*startTries)
	if tries == nil || method != workflowservice.WorkflowService_StartWorkflowExecution_FullMethodName {
		return err
	}
	if answer := status.Convert(err); answer.Code() != codes.ResourceExhausted || strings.Contains(answer.Message(), "larger than max") {
		tries.unclear = true // a too large message has this code too
		return err
	}
	tries.refused++
	if time.Since(tries.began) < startPatience {
		return err
	}
	return status.Error(codes.FailedPrecondition, status.Convert(err).Message()) // the SDK does not retry this code
}

func exhausted(err error) *providers.Fault {
	return refusal(providers.Overloaded, "The task engine takes no more tasks at the moment.", exhaustedRetry, err)
}

type interactiveKey struct{}

// interactive marks the requests for which an operator waits: an unavailable engine must be reported soon.
func interactive(ctx context.Context) context.Context {
	return context.WithValue(ctx, interactiveKey{}, true)
}

// FailWithoutConnection is a gRPC interceptor for the client of Temporal, inside the SDK's retries. It fails an interactive request that
// has no connection after connectPatience. The SDK would retry for half of the caller's time.
func FailWithoutConnection(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	if ctx.Value(interactiveKey{}) != nil && !connected(ctx, cc) && ctx.Err() == nil {
		return status.Errorf(codes.FailedPrecondition, "no connection within %s", connectPatience) // the SDK does not retry this code
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

func connected(ctx context.Context, cc *grpc.ClientConn) bool {
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	for {
		state := cc.GetState()
		switch state {
		case connectivity.Ready:
			return true
		case connectivity.Idle:
			cc.Connect()
		}
		if !cc.WaitForStateChange(ctx, state) {
			return false
		}
	}
}
