package temporal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"modelrelay/dev/settings"
)

// askInterval is the pause between two requests to a server that is still starting.
const askInterval = 50 * time.Millisecond

// ensureNamespace waits until the server answers, makes the namespace where there is none, raises a shorter retention, adds the search
// attributes a kept database lacks, and returns when a query may name them all.
func ensureNamespace(ctx context.Context, c client.Client) error {
	steps := []func(context.Context, client.Client) error{registerNamespace, raiseRetention, addSearchAttributes, querySearchAttributes}
	for _, step := range steps {
		if err := until(ctx, func() error { return step(ctx, c) }); err != nil {
			return err
		}
	}
	return nil
}

func registerNamespace(ctx context.Context, c client.Client) error {
	_, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: settings.Namespace})
	if absent := (*serviceerror.NamespaceNotFound)(nil); !errors.As(err, &absent) {
		return err
	}
	_, err = c.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: settings.Namespace, WorkflowExecutionRetentionPeriod: durationpb.New(settings.Retention),
	})
	if exists := (*serviceerror.NamespaceAlreadyExists)(nil); err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("register the namespace: %w", err)
	}
	return nil
}

func raiseRetention(ctx context.Context, c client.Client) error {
	described, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: settings.Namespace})
	if err != nil {
		return fmt.Errorf("describe the namespace: %w", err)
	}
	if described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration() >= settings.Retention {
		return nil
	}
	_, err = c.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: settings.Namespace,
		Config:    &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(settings.Retention)},
	})
	if err != nil {
		return fmt.Errorf("raise the namespace's retention: %w", err)
	}
	return nil
}

func addSearchAttributes(ctx context.Context, c client.Client) error {
	known, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: settings.Namespace})
	if err != nil {
		return fmt.Errorf("list search attributes: %w", err)
	}
	missing := map[string]enums.IndexedValueType{}
	for _, name := range settings.SearchAttributes() {
		if _, ok := known.GetCustomAttributes()[name]; !ok {
			missing[name] = enums.INDEXED_VALUE_TYPE_KEYWORD
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: settings.Namespace, SearchAttributes: missing,
	})
	if err != nil {
		return fmt.Errorf("add search attributes: %w", err)
	}
	return nil
}

// querySearchAttributes fails until the frontend's own copy of the namespace knows every attribute: it is refreshed
// some seconds after one was added.
func querySearchAttributes(ctx context.Context, c client.Client) error {
	terms := make([]string, 0, len(settings.SearchAttributes()))
	for _, name := range settings.SearchAttributes() {
		terms = append(terms, name+" = ''")
	}
	_, err := c.WorkflowService().CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: settings.Namespace, Query: strings.Join(terms, " OR "),
	})
	if err != nil {
		return fmt.Errorf("query by search attributes: %w", err)
	}
	return nil
}

// until repeats do until it succeeds or ctx ends, and then returns do's last error.
func until(ctx context.Context, do func() error) error {
	tick := time.NewTicker(askInterval)
	defer tick.Stop()
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("gave up: %w (%w)", err, ctx.Err())
		case <-tick.C:
		}
	}
}
