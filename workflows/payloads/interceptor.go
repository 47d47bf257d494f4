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

// logEvery is the interval at which the log repeats that payloads cannot be decrypted. Every try of a task would repeat it otherwise.
const logEvery = time.Minute

// Interceptor encrypts the payloads of requests to Temporal and decrypts those of answers. It logs payloads that it cannot decrypt.
//
// An undecryptable payload fails no task. A workflow task is refused, so that Temporal offers it again until a worker has the key. An
// activity is dropped, as if its worker was lost. A read of one execution returns FailedPrecondition; lists return the payload as it is.
func (c *Codec) Interceptor(log *slog.Logger) grpc.UnaryClientInterceptor {
	return (&interceptor{codec: c, log: log}).intercept
}

type interceptor struct {
	codec  *Codec
	log    *slog.Logger
	logged fair.Rate[struct{}]
}

func (i *interceptor) intercept(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
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
	return i.read(ctx, got, func(refusal *workflowservice.RespondWorkflowTaskFailedRequest) {
		// If this request fails, the timeout of the workflow task has the same effect.
		_ = invoke(ctx, workflowservice.WorkflowService_RespondWorkflowTaskFailed_FullMethodName, refusal,
			new(workflowservice.RespondWorkflowTaskFailedResponse), cc, opts...)
	})
}

// refuse returns a workflow task to Temporal over the connection from which it came.
type refuse func(refusal *workflowservice.RespondWorkflowTaskFailedRequest)

// encrypted returns an encrypted copy of a request. The original must not change: the caller may send it again.
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

// decrypt decrypts the payloads and failures of an answer in place. After an error some of them may be decrypted.
func (i *interceptor) decrypt(ctx context.Context, answer proto.Message) error {
	if err := i.visit(ctx, answer, i.codec.Decode); err != nil {
		return err
	}
	visit := func(_ *proxy.VisitFailuresContext, f *failurepb.Failure) error {
		converter.DecodeCommonFailureAttributes(converter.GetDefaultDataConverter(), f)
		return nil
	}
	return proxy.VisitFailures(ctx, answer, proxy.VisitFailuresOptions{Visitor: visit})
}

func (i *interceptor) visit(ctx context.Context, message proto.Message, do func([]*commonpb.Payload) ([]*commonpb.Payload, error)) error {
	return proxy.VisitPayloads(ctx, message, proxy.VisitPayloadsOptions{
		SkipSearchAttributes: true,
		Visitor: func(_ *proxy.VisitPayloadsContext, list []*commonpb.Payload) ([]*commonpb.Payload, error) {
			return do(list)
		},
	})
}

// read decrypts an answer, and handles one that cannot be decrypted.
func (i *interceptor) read(ctx context.Context, answer proto.Message, refuse refuse) error {
	switch got := answer.(type) {
	case *workflowservice.PollWorkflowTaskQueueResponse:
		i.step(ctx, got, refuse)
		return nil
	case *workflowservice.PollActivityTaskQueueResponse:
		if err := i.decrypt(ctx, got); err != nil {
			i.report(ctx, "an activity waits for its timeout", got.GetWorkflowExecution().GetWorkflowId(), err)
			proto.Reset(got) // an empty poll
		}
		return nil
	case *workflowservice.RespondWorkflowTaskCompletedResponse:
		i.more(ctx, got, refuse)
		return nil
	}
	err := i.decrypt(ctx, answer)
	if err == nil {
		return nil
	}
	switch answer.(type) {
	case *workflowservice.DescribeWorkflowExecutionResponse, *workflowservice.GetWorkflowExecutionHistoryResponse,
		*workflowservice.GetWorkflowExecutionHistoryReverseResponse, *workflowservice.QueryWorkflowResponse:
		i.report(ctx, "an execution cannot be read", "", err)
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	i.report(ctx, "a part of an answer cannot be read", "", err)
	return nil
}

// more decrypts the workflow task and the activities that came with the completion of a workflow task.
func (i *interceptor) more(ctx context.Context, got *workflowservice.RespondWorkflowTaskCompletedResponse, refuse refuse) {
	if next := got.GetWorkflowTask(); next != nil && !i.step(ctx, next, refuse) {
		got.WorkflowTask = nil
	}
	var clear []*workflowservice.PollActivityTaskQueueResponse
	for _, task := range got.GetActivityTasks() {
		if err := i.decrypt(ctx, task); err != nil {
			i.report(ctx, "an activity waits for its timeout", task.GetWorkflowExecution().GetWorkflowId(), err)
			continue
		}
		clear = append(clear, task)
	}
	got.ActivityTasks = clear
}

// step decrypts a workflow task and reports success. It returns an undecryptable one to Temporal with the reason, which the Temporal
// UI shows. From the second try on it leaves the task to its timeout, which delays the next try.
func (i *interceptor) step(ctx context.Context, got *workflowservice.PollWorkflowTaskQueueResponse, refuse refuse) bool {
	err := i.decrypt(ctx, got)
	if err == nil {
		return true
	}
	i.report(ctx, "a task waits", got.GetWorkflowExecution().GetWorkflowId(), err)
	if got.GetAttempt() <= 1 && got.GetQuery() == nil {
		refuse(&workflowservice.RespondWorkflowTaskFailedRequest{
			TaskToken: got.GetTaskToken(), Cause: enumspb.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE,
			Failure: &failurepb.Failure{Message: err.Error(), FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
				ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: "UnreadablePayload"},
			}},
		})
	}
	proto.Reset(got)
	return false
}

// report logs a failed decryption, at most once per logEvery.
func (i *interceptor) report(ctx context.Context, what, id string, err error) {
	if i.logged.Take(struct{}{}, 1, fair.Quota{Units: 1, Per: logEvery}, time.Now()) > 0 {
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
