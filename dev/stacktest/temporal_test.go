package stacktest_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"

	"modelrelay/dev/loopback"
	"modelrelay/dev/settings"
)

func TestTemporalSurvivesKill(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	page, err := loopback.Address("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := start(t, "temporal", "--listen", "127.0.0.1:0", "--ui", page.String(), "--data", data)
	addr := server.addr
	c, err := client.NewLazyClient(client.Options{HostPort: addr, Logger: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w := worker.New(c, settings.TaskQueue, worker.Options{})
	w.RegisterWorkflow(waitAWhile)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()

	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: "waits", TaskQueue: settings.TaskQueue,
	}, waitAWhile, 4*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	awaitTimer(t, c, run)
	server.kill(t)

	start(t, "temporal", "--listen", addr, "--ui", page.String(), "--data", data)
	if err := run.Get(t.Context(), nil); err != nil {
		t.Errorf("the workflow that waited during the kill: got %v, want success", err)
	}
	response, err := http.Get("http://" + page.String() + "/api/v1/namespaces/" + settings.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("the UI's namespace: got %s %s, %v, want 200", response.Status, body, err)
	}
}

// waitAWhile waits for one timer.
func waitAWhile(ctx workflow.Context, d time.Duration) error { return workflow.Sleep(ctx, d) }

// awaitTimer returns when the workflow waits for its timer.
func awaitTimer(t *testing.T, c client.Client, run client.WorkflowRun) {
	t.Helper()
	eventually(t, "a started timer", func() error {
		events := c.GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			event, err := events.Next()
			if err != nil {
				return err
			}
			if event.GetEventType() == enums.EVENT_TYPE_TIMER_STARTED {
				return nil
			}
		}
		return errors.New("not in the history")
	})
}

func TestTemporalMendsNamespace(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := start(t, "temporal", "--listen", "127.0.0.1:0", "--ui", "", "--data", data)
	c, err := client.NewLazyClient(client.Options{HostPort: server.addr, Logger: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	checkNamespace(t, c)

	// What a worker of the product does at its start.
	_, err = c.OperatorService().AddSearchAttributes(t.Context(), &operatorservice.AddSearchAttributesRequest{
		Namespace: settings.Namespace, SearchAttributes: map[string]enums.IndexedValueType{"TaskLater": enums.INDEXED_VALUE_TYPE_KEYWORD},
	})
	if err != nil {
		t.Errorf("add a search attribute: got %v, want success", err)
	}
	eventually(t, "a start with the added search attribute", func() error {
		_, err := c.WorkflowService().CountWorkflowExecutions(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: settings.Namespace, Query: "TaskLater = 'x'",
		})
		return err
	})

	// A database kept from another time.
	_, err = c.OperatorService().RemoveSearchAttributes(t.Context(), &operatorservice.RemoveSearchAttributesRequest{
		Namespace: settings.Namespace, SearchAttributes: []string{"TaskState", "TaskModel"},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.WorkflowService().UpdateNamespace(t.Context(), &workflowservice.UpdateNamespaceRequest{
		Namespace: settings.Namespace,
		Config:    &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(24 * time.Hour)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := server.stop(); got != 0 {
		t.Errorf("exit status after SIGTERM: got %d, want 0", got)
	}
	start(t, "temporal", "--listen", server.addr, "--ui", "", "--data", data)
	checkNamespace(t, c)
}

// checkNamespace compares the namespace with what the stacks agree on.
func checkNamespace(t *testing.T, c client.Client) {
	t.Helper()
	described, err := c.WorkflowService().DescribeNamespace(t.Context(),
		&workflowservice.DescribeNamespaceRequest{Namespace: settings.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	if got := described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(); got != settings.Retention {
		t.Errorf("retention: got %v, want %v", got, settings.Retention)
	}
	for _, name := range settings.SearchAttributes() {
		_, err := c.WorkflowService().CountWorkflowExecutions(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: settings.Namespace, Query: fmt.Sprintf("%s = 'x'", name),
		})
		if err != nil {
			t.Errorf("query by %s: got %v, want success", name, err)
		}
	}
}

// silent is a logger for clients whose server is killed on purpose.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
