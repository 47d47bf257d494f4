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
	// startPatience is how long a start is tried again that the namespace refuses for its rate: a burst of one second passes
	// unnoticed, and beyond it the caller waits better than its connection.
	startPatience = 2 * time.Second
	// exhaustedRetry is what a create is told to wait then.
	exhaustedRetry = 5 * time.Second
	// connectPatience is how long somebody who looks waits for a connection to the engine. One that can be had is there within a
	// second, over TLS and a wide network as well; a server that starts again is back in two, unseen.
	connectPatience = 2 * time.Second
)

// errExhausted is a start whose every try was refused for the namespace's rate or load: the task surely did not begin.
var errExhausted = errors.New("the namespace takes no more starts now")

// startTries is what came of the tries of one start. The SDK tells of the last alone, and of none where its time ran out in
// between.
type startTries struct {
	began time.Time
	// refused for the namespace's rate or load; unclear is any other outcome, success among them.
	refused int
	unclear bool
}

// exhausted tells that the start surely did not happen, for the namespace's rate or load.
func (t *startTries) exhausted() bool { return t.refused > 0 && !t.unclear }

type startTriesKey struct{}

// CountRefusals is a gRPC interceptor for the client of Temporal, within the SDK's own tries. It counts what becomes of a create's
// start, and ends its tries where the namespace goes on refusing.
func CountRefusals(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	tries, _ := ctx.Value(startTriesKey{}).(*startTries)
	if tries == nil || method != workflowservice.WorkflowService_StartWorkflowExecution_FullMethodName {
		return err
	}
	if answer := status.Convert(err); answer.Code() != codes.ResourceExhausted || strings.Contains(answer.Message(), "larger than max") {
		tries.unclear = true // a message that is too long has the code as well
		return err
	}
	tries.refused++
	if time.Since(tries.began) < startPatience {
		return err
	}
	return status.Error(codes.FailedPrecondition, status.Convert(err).Message()) // which the SDK does not try again
}

// exhausted is the fault of a create that the namespace refuses for its rate or load.
func exhausted(err error) *providers.Fault {
	return &providers.Fault{
		Kind: providers.Overloaded, Message: "The task engine takes no more tasks at the moment.", RetryAfter: exhaustedRetry, Accepted: providers.NotAccepted, Err: err,
	}
}

type lookingKey struct{}

// looking marks requests of somebody who looks, and had better be told soon that the engine is away.
func looking(ctx context.Context) context.Context { return context.WithValue(ctx, lookingKey{}, true) }

// NoticeAway is a gRPC interceptor for the client of Temporal, within the SDK's own tries. Without a connection it ends a request of
// somebody who looks after connectPatience. The SDK would go on for half of the caller's time: to it a refused connection is an
// answer that is worth another try.
func NoticeAway(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if ctx.Value(lookingKey{}) != nil && !connected(ctx, cc) && ctx.Err() == nil {
		return status.Errorf(codes.FailedPrecondition, "no connection within %s", connectPatience) // which the SDK does not try again
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

// connected waits for a connection.
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
