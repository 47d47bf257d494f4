package payloads

import (
	"context"
	"errors"
	"log/slog"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/proxy"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"modelrelay/storage/fair"
)

// tellEvery is how often the log repeats that payloads cannot be read: every try of a task would say it.
const tellEvery = time.Minute

// Interceptor encrypts what a client of Temporal sends and decrypts what it gets, of every request and answer. log is told of what
// cannot be decrypted.
//
// What cannot be decrypted fails nothing for good. A step of a workflow is refused, so that Temporal offers it again until a worker
// has the key; an activity is dropped, which is the same to Temporal as the death of its worker. Reading one execution is an
// error, FailedPrecondition, and lists show it as it is.
func (c *Codec) Interceptor(log *slog.Logger) grpc.UnaryClientInterceptor {
	return (&interceptor{codec: c, log: log}).intercept
}

type interceptor struct {
	codec  *Codec
	log    *slog.Logger
	logged fair.Rate[struct{}]
}

func (i *interceptor) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if sent, ok := req.(proto.Message); ok {
		var err error
		if req, err = i.encrypted(ctx, sent); err != nil {
			return err
		}
	}
	if err := invoke(ctx, method, req, reply, cc, opts...); err != nil {
		return err
	}
	got, ok := reply.(proto.Message)
	if !ok {
		return nil
	}
	// again sends another request over the same connection, with the same credentials.
	again := func(method string, req, reply proto.Message) error {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	return i.read(ctx, got, again)
}

// encrypted is a copy of a request with all of it encrypted: the caller sends the same one again where it is refused, and the SDK
// keeps parts of it.
func (i *interceptor) encrypted(ctx context.Context, req proto.Message) (proto.Message, error) {
	if _, on := i.codec.keys.writer(); !on {
		return req, nil
	}
	req = proto.Clone(req)
	err := proxy.VisitFailures(ctx, req, proxy.VisitFailuresOptions{Visitor: func(_ *proxy.VisitFailuresContext, f *failurepb.Failure) error {
		if f.GetEncodedAttributes() != nil {
			return nil
		}
		return converter.EncodeCommonFailureAttributes(converter.GetDefaultDataConverter(), f)
	}})
	if err != nil {
		return nil, status.Errorf(codes.FailedPrecondition, "encrypt: %v", err)
	}
	if err := i.visit(ctx, req, i.codec.Encode); err != nil {
		return nil, status.Errorf(codes.FailedPrecondition, "encrypt: %v", err)
	}
	return req, nil
}

// decrypt makes an answer clear; one that cannot be made clear may be so in parts.
func (i *interceptor) decrypt(ctx context.Context, answer proto.Message) error {
	if err := i.visit(ctx, answer, i.codec.Decode); err != nil {
		return err
	}
	return proxy.VisitFailures(ctx, answer, proxy.VisitFailuresOptions{Visitor: func(_ *proxy.VisitFailuresContext, f *failurepb.Failure) error {
		converter.DecodeCommonFailureAttributes(converter.GetDefaultDataConverter(), f)
		return nil
	}})
}

func (i *interceptor) visit(ctx context.Context, message proto.Message, do func([]*commonpb.Payload) ([]*commonpb.Payload, error)) error {
	return proxy.VisitPayloads(ctx, message, proxy.VisitPayloadsOptions{
		SkipSearchAttributes: true,
		Visitor: func(_ *proxy.VisitPayloadsContext, list []*commonpb.Payload) ([]*commonpb.Payload, error) {
			return do(list)
		},
	})
}

// read decrypts an answer.
func (i *interceptor) read(ctx context.Context, answer proto.Message, again func(string, proto.Message, proto.Message) error) error {
	switch got := answer.(type) {
	case *workflowservice.PollWorkflowTaskQueueResponse:
		i.step(ctx, got, again)
		return nil
	case *workflowservice.PollActivityTaskQueueResponse:
		if err := i.decrypt(ctx, got); err != nil {
			i.tell(ctx, "an activity waits for its time-out", got.GetWorkflowExecution().GetWorkflowId(), err)
			proto.Reset(got) // as a poll that found nothing
		}
		return nil
	case *workflowservice.RespondWorkflowTaskCompletedResponse:
		i.more(ctx, got, again)
		return nil
	}
	err := i.decrypt(ctx, answer)
	if err == nil {
		return nil
	}
	switch answer.(type) {
	case *workflowservice.DescribeWorkflowExecutionResponse, *workflowservice.GetWorkflowExecutionHistoryResponse,
		*workflowservice.GetWorkflowExecutionHistoryReverseResponse, *workflowservice.QueryWorkflowResponse:
		i.tell(ctx, "an execution cannot be read", "", err)
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	i.tell(ctx, "some of an answer cannot be read", "", err)
	return nil
}

// more reads what came along with the end of a step: the next one, and activities.
func (i *interceptor) more(ctx context.Context, got *workflowservice.RespondWorkflowTaskCompletedResponse, again func(string, proto.Message, proto.Message) error) {
	if next := got.GetWorkflowTask(); next != nil && !i.step(ctx, next, again) {
		got.WorkflowTask = nil
	}
	var clear []*workflowservice.PollActivityTaskQueueResponse
	for _, task := range got.GetActivityTasks() {
		if err := i.decrypt(ctx, task); err != nil {
			i.tell(ctx, "an activity waits for its time-out", task.GetWorkflowExecution().GetWorkflowId(), err)
			continue
		}
		clear = append(clear, task)
	}
	got.ActivityTasks = clear
}

// step reads a workflow's step. One that cannot be read is given back with the reason, which the Temporal UI shows; from its
// second try on it is left to its time-out, so that it comes again no sooner than after that. False: it is gone.
func (i *interceptor) step(ctx context.Context, got *workflowservice.PollWorkflowTaskQueueResponse, again func(string, proto.Message, proto.Message) error) bool {
	err := i.decrypt(ctx, got)
	if err == nil {
		return true
	}
	i.tell(ctx, "a task waits", got.GetWorkflowExecution().GetWorkflowId(), err)
	if got.GetAttempt() <= 1 && got.GetQuery() == nil {
		refusal := &workflowservice.RespondWorkflowTaskFailedRequest{
			TaskToken: got.GetTaskToken(), Cause: enumspb.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE,
			Failure: &failurepb.Failure{Message: err.Error(), FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
				ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: "UnreadablePayload"},
			}},
		}
		// Where this does not arrive either, the step's time-out does the same.
		_ = again(workflowservice.WorkflowService_RespondWorkflowTaskFailed_FullMethodName, refusal, new(workflowservice.RespondWorkflowTaskFailedResponse))
	}
	proto.Reset(got)
	return false
}

// tell writes into the log what cannot be read, now and then.
func (i *interceptor) tell(ctx context.Context, what, id string, err error) {
	if i.logged.Take(struct{}{}, 1, fair.Quota{Units: 1, Per: tellEvery}, time.Now()) > 0 {
		return
	}
	attrs := []any{slog.String("what", what), slog.Any("error", err)}
	if unknown := (*UnknownKeyError)(nil); errors.As(err, &unknown) {
		attrs = append(attrs, slog.String("key_id", unknown.ID))
	}
	if id != "" {
		attrs = append(attrs, slog.String("workflow", id))
	}
	i.log.ErrorContext(ctx, "payloads cannot be decrypted", attrs...)
}
