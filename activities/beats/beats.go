// Package beats has an activity's last heartbeat travel with its answer. An activity that looks at something, says what it
// saw by a heartbeat and asks to be run again costs the engine two requests and two writes; joined they are one, and what
// was seen and the wait for the next look are written together or not at all.
//
// It must not import activities.
package beats

import (
	"context"
	"sync"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

type mark struct{}

// WithAnswer marks the heartbeats that are recorded with the context: they may wait for the activity's answer. It is for the
// last heartbeat before an activity returns an error; that of one that succeeds is lost. Such a heartbeat does not tell the
// activity that it was cancelled. Without Join it is sent at once.
func WithAnswer(ctx context.Context) context.Context { return context.WithValue(ctx, mark{}, true) }

// Join is an option of the connection to Temporal over which a worker's activities answer.
func Join() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor((&joiner{held: make(map[string]*commonpb.Payloads)}).intercept)
}

// joiner holds heartbeats by the token of their activity's task, from the heartbeat to the answer that follows at once. It has
// at most one for each activity that runs.
type joiner struct {
	mu   sync.Mutex
	held map[string]*commonpb.Payloads
}

func (j *joiner) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	switch r := req.(type) {
	case *workflowservice.RecordActivityTaskHeartbeatRequest:
		if ctx.Value(mark{}) != nil {
			j.mu.Lock()
			defer j.mu.Unlock()
			j.held[string(r.GetTaskToken())] = r.GetDetails()
			return nil
		}
	case *workflowservice.RespondActivityTaskFailedRequest:
		if details := j.take(r.GetTaskToken()); details != nil {
			r.LastHeartbeatDetails = details // it stays there if the answer is sent again
		}
	case *workflowservice.RespondActivityTaskCompletedRequest:
		j.take(r.GetTaskToken())
	case *workflowservice.RespondActivityTaskCanceledRequest:
		j.take(r.GetTaskToken())
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

// take returns the heartbeat that waits for the answer to a task, nil where none does.
func (j *joiner) take(token []byte) *commonpb.Payloads {
	j.mu.Lock()
	defer j.mu.Unlock()
	details := j.held[string(token)]
	delete(j.held, string(token))
	return details
}
