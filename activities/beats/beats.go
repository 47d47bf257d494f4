// Package beats sends an activity's last heartbeat together with its answer. An activity that records a heartbeat and
// then requests a retry costs Temporal two requests and two writes. Joined they are one, and the heartbeat and the retry are written
// together or not at all.
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

// WithAnswer marks heartbeats that are recorded with the context: they may wait for the activity's answer. It is only for the last
// heartbeat before an activity returns an error; that of a successful activity is lost. Such a heartbeat does not report a cancel to
// the activity. Without Join it is sent at once.
func WithAnswer(ctx context.Context) context.Context { return context.WithValue(ctx, mark{}, true) }

// Join returns an option for the connection of a worker to Temporal.
func Join() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor((&joiner{waiting: make(map[string]*commonpb.Payloads)}).intercept)
}

// joiner stores heartbeats by the token of their activity task until the answer follows: at most one for each running activity.
type joiner struct {
	mu      sync.Mutex
	waiting map[string]*commonpb.Payloads
}

func (j *joiner) intercept(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	switch r := req.(type) {
	case *workflowservice.RecordActivityTaskHeartbeatRequest:
		if ctx.Value(mark{}) != nil {
			j.mu.Lock()
			defer j.mu.Unlock()
			j.waiting[string(r.GetTaskToken())] = r.GetDetails()
			return nil
		}
	case *workflowservice.RespondActivityTaskFailedRequest:
		if details := j.take(r.GetTaskToken()); details != nil {
			r.LastHeartbeatDetails = details // it stays if the answer is sent again
		}
	case *workflowservice.RespondActivityTaskCompletedRequest:
		j.take(r.GetTaskToken())
	case *workflowservice.RespondActivityTaskCanceledRequest:
		j.take(r.GetTaskToken())
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

// take removes and returns the heartbeat that waits for the answer; nil if there is none.
func (j *joiner) take(token []byte) *commonpb.Payloads {
	j.mu.Lock()
	defer j.mu.Unlock()
	details := j.waiting[string(token)]
	delete(j.waiting, string(token))
	return details
}
