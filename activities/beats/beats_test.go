package beats_test

import (
	"context"
	"net"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"modelrelay/activities/beats"
)

// engine notes what arrives of an activity.
type engine struct {
	workflowservice.UnimplementedWorkflowServiceServer

	beats  []string
	failed []string
}

func word(p *commonpb.Payloads) string {
	if len(p.GetPayloads()) == 0 {
		return ""
	}
	return string(p.GetPayloads()[0].GetData())
}

func (e *engine) RecordActivityTaskHeartbeat(
	_ context.Context, r *workflowservice.RecordActivityTaskHeartbeatRequest,
) (*workflowservice.RecordActivityTaskHeartbeatResponse, error) {
	e.beats = append(e.beats, word(r.GetDetails()))
	return &workflowservice.RecordActivityTaskHeartbeatResponse{}, nil
}

func (e *engine) RespondActivityTaskFailed(
	_ context.Context, r *workflowservice.RespondActivityTaskFailedRequest,
) (*workflowservice.RespondActivityTaskFailedResponse, error) {
	e.failed = append(e.failed, word(r.GetLastHeartbeatDetails()))
	return &workflowservice.RespondActivityTaskFailedResponse{}, nil
}

func (e *engine) RespondActivityTaskCompleted(
	context.Context, *workflowservice.RespondActivityTaskCompletedRequest,
) (*workflowservice.RespondActivityTaskCompletedResponse, error) {
	return &workflowservice.RespondActivityTaskCompletedResponse{}, nil
}

// TestJoin sends the heartbeats and answers of activities as a worker does.
func TestJoin(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e, server := &engine{}, grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(server, e)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), beats.Join())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	service := workflowservice.NewWorkflowServiceClient(conn)
	beat := func(ctx context.Context, token, text string) {
		t.Helper()
		details := &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: []byte(text)}}}
		if _, err := service.RecordActivityTaskHeartbeat(ctx,
			&workflowservice.RecordActivityTaskHeartbeatRequest{TaskToken: []byte(token), Details: details}); err != nil {
			t.Fatal(err)
		}
	}
	fail := func(token string) {
		t.Helper()
		if _, err := service.RespondActivityTaskFailed(t.Context(),
			&workflowservice.RespondActivityTaskFailedRequest{TaskToken: []byte(token)}); err != nil {
			t.Fatal(err)
		}
	}
	joined := beats.WithAnswer(t.Context())
	beat(t.Context(), "a", "at once")
	beat(joined, "a", "with its answer")
	beat(joined, "b", "another's")
	fail("a")
	fail("a") // a next try says nothing of the one before
	beat(joined, "c", "of one that succeeds")
	if _, err := service.RespondActivityTaskCompleted(t.Context(),
		&workflowservice.RespondActivityTaskCompletedRequest{TaskToken: []byte("c")}); err != nil {
		t.Fatal(err)
	}
	fail("c")
	fail("b")
	if len(e.beats) != 1 || e.beats[0] != "at once" {
		t.Errorf("heartbeats %q, want the one that was not to wait", e.beats)
	}
	if want := [4]string{"with its answer", "", "", "another's"}; len(e.failed) != 4 || [4]string(e.failed) != want {
		t.Errorf("answers with %q, want %q", e.failed, want)
	}
}
