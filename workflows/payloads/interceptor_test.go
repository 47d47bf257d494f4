package payloads_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	querypb "go.temporal.io/api/query/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"modelrelay/workflows/payloads"
)

// intercepting is the interceptor of a codec, whose log is written there.
func intercepting(codec *payloads.Codec, log *bytes.Buffer) grpc.UnaryClientInterceptor {
	return codec.Interceptor(slog.New(slog.NewTextHandler(log, nil)))
}

// exchange sends a request through the interceptor to a server that gives the answer. It returns what the server got of each method.
func exchange(t *testing.T, through grpc.UnaryClientInterceptor, req, reply, answer proto.Message) (map[string]proto.Message, error) {
	t.Helper()
	got := make(map[string]proto.Message)
	invoke := func(_ context.Context, method string, req, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		got[method] = proto.Clone(req.(proto.Message))
		if method == "/the/call" && answer != nil {
			proto.Merge(reply.(proto.Message), answer)
		}
		return nil
	}
	err := through(t.Context(), "/the/call", req, reply, nil, invoke)
	return got, err
}

// TestRequestsStayTheCallers: the SDK sends the same request again where it was refused, and keeps parts of it.
func TestRequestsStayTheCallers(t *testing.T) {
	t.Parallel()
	codec, _ := newCodec(t, keyOf("a", 'a'))
	through := intercepting(codec, new(bytes.Buffer))
	req := &workflowservice.RespondActivityTaskFailedRequest{
		Failure: &failurepb.Failure{
			Message: "canary", StackTrace: "canary", Cause: &failurepb.Failure{Message: "canary"},
			FailureInfo: &failurepb.Failure_ApplicationFailureInfo{ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{
				Type: "Fault", Details: &commonpb.Payloads{Payloads: []*commonpb.Payload{payload("canary")}},
			}},
		},
		LastHeartbeatDetails: &commonpb.Payloads{Payloads: []*commonpb.Payload{payload("canary")}},
	}
	before := proto.CloneOf(req)
	for range 2 {
		got, err := exchange(t, through, req, new(workflowservice.RespondActivityTaskFailedResponse), nil)
		if err != nil {
			t.Fatal(err)
		}
		sent := got["/the/call"].(*workflowservice.RespondActivityTaskFailedRequest)
		if wire, _ := proto.Marshal(sent); bytes.Contains(wire, []byte("canary")) {
			t.Error("the text can be read on the wire")
		}
		if sent.GetFailure().GetApplicationFailureInfo().GetType() != "Fault" {
			t.Error("the server cannot see the type of the failure, by which it decides on another try")
		}
		if !proto.Equal(req, before) {
			t.Fatal("the caller's request is another now")
		}
		// What the server repeats of it is what was sent.
		answer := &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{Events: []*historypb.HistoryEvent{{
			Attributes: &historypb.HistoryEvent_ActivityTaskFailedEventAttributes{
				ActivityTaskFailedEventAttributes: &historypb.ActivityTaskFailedEventAttributes{Failure: sent.GetFailure()},
			},
		}}}}
		var reply workflowservice.GetWorkflowExecutionHistoryResponse
		if _, err := exchange(t, through, &workflowservice.GetWorkflowExecutionHistoryRequest{}, &reply, answer); err != nil {
			t.Fatal(err)
		}
		failure := reply.GetHistory().GetEvents()[0].GetActivityTaskFailedEventAttributes().GetFailure()
		if failure.GetMessage() != "canary" || failure.GetCause().GetMessage() != "canary" ||
			string(failure.GetApplicationFailureInfo().GetDetails().GetPayloads()[0].GetData()) != "canary" {
			t.Errorf("read back: %v", failure)
		}
	}
}

// TestUnknownKey: a worker without the key of a payload fails no task: Temporal repeats the step. The error of a read names the
// key.
func TestUnknownKey(t *testing.T) {
	t.Parallel()
	other, _ := newCodec(t, keyOf("gone", 'g'))
	sealed := &commonpb.Payloads{Payloads: []*commonpb.Payload{encode(t, other, payload("x"))}}
	started := &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: sealed},
	}}
	history := &historypb.History{Events: []*historypb.HistoryEvent{started}}
	step := func(attempt int32) *workflowservice.PollWorkflowTaskQueueResponse {
		return &workflowservice.PollWorkflowTaskQueueResponse{TaskToken: []byte("token"), Attempt: attempt, History: history}
	}
	codec, _ := newCodec(t, keyOf("a", 'a'))
	const failed = workflowservice.WorkflowService_RespondWorkflowTaskFailed_FullMethodName

	var log bytes.Buffer
	through := intercepting(codec, &log)
	var polled workflowservice.PollWorkflowTaskQueueResponse
	got, err := exchange(t, through, &workflowservice.PollWorkflowTaskQueueRequest{}, &polled, step(1))
	refusal, _ := got[failed].(*workflowservice.RespondWorkflowTaskFailedRequest)
	if err != nil || len(polled.GetTaskToken()) > 0 || string(refusal.GetTaskToken()) != "token" ||
		!strings.Contains(refusal.GetFailure().GetMessage(), `"gone"`) {
		t.Errorf("a first step: %v, %v", err, got)
	}
	if !strings.Contains(log.String(), "key_id=gone") {
		t.Errorf("the log has %s", log.String())
	}
	withQuery := step(1)
	withQuery.Query = &querypb.WorkflowQuery{}
	for name, answer := range map[string]*workflowservice.PollWorkflowTaskQueueResponse{"a later step": step(2), "a query": withQuery} {
		var polled workflowservice.PollWorkflowTaskQueueResponse
		got, err := exchange(t, through, &workflowservice.PollWorkflowTaskQueueRequest{}, &polled, answer)
		if err != nil || len(polled.GetTaskToken()) > 0 || len(got) != 1 {
			t.Errorf("%s: %v, %v", name, err, got)
		}
	}

	var activity workflowservice.PollActivityTaskQueueResponse
	_, err = exchange(t, through, &workflowservice.PollActivityTaskQueueRequest{}, &activity,
		&workflowservice.PollActivityTaskQueueResponse{TaskToken: []byte("token"), Input: sealed})
	if err != nil || len(activity.GetTaskToken()) > 0 {
		t.Errorf("an activity: %v, %v", err, &activity)
	}

	var more workflowservice.RespondWorkflowTaskCompletedResponse
	got, err = exchange(t, through, &workflowservice.RespondWorkflowTaskCompletedRequest{}, &more,
		&workflowservice.RespondWorkflowTaskCompletedResponse{
			WorkflowTask: step(1),
			ActivityTasks: []*workflowservice.PollActivityTaskQueueResponse{
				{TaskToken: []byte("bad"), Input: sealed}, {
					TaskToken: []byte("good"),
					Input:     &commonpb.Payloads{Payloads: []*commonpb.Payload{payload("x")}},
				},
			},
		})
	if err != nil || more.GetWorkflowTask() != nil || got[failed] == nil || len(more.GetActivityTasks()) != 1 ||
		string(more.GetActivityTasks()[0].GetTaskToken()) != "good" {
		t.Errorf("what comes along: %v, %v, %v", err, &more, got)
	}

	for name, read := range map[string]struct{ req, reply, answer proto.Message }{
		"history": {
			&workflowservice.GetWorkflowExecutionHistoryRequest{}, &workflowservice.GetWorkflowExecutionHistoryResponse{},
			&workflowservice.GetWorkflowExecutionHistoryResponse{History: history},
		},
		"query": {
			&workflowservice.QueryWorkflowRequest{}, &workflowservice.QueryWorkflowResponse{},
			&workflowservice.QueryWorkflowResponse{QueryResult: sealed},
		},
	} {
		_, err := exchange(t, through, read.req, read.reply, read.answer)
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), `"gone"`) ||
			!strings.Contains(err.Error(), "temporal.payload_keys") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 {
		t.Errorf("%d lines in the log within a minute:\n%s", lines, log.String())
	}
}
