package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/workflows"
)

const (
	// pageMost is the number of executions that one visibility request reads: such requests are few and expensive.
	pageMost = 500
	// pageFor is how long a page is reused: a cluster answers ten visibility queries a second, and browsers repeat theirs every two.
	pageFor = 2 * time.Second
	// queryTimeout bounds one visibility request. The SDK gives it half of that, so an operator sees a failure within three seconds.
	queryTimeout = 6 * time.Second
	// pagesAtOnce bounds concurrent page reads, of different filters.
	pagesAtOnce = 2
	// renewAfter is the age after which running tasks of a shared page are described again: a browser shows a change in 1.5 s.
	renewAfter = 500 * time.Millisecond
	// renewMost bounds these tasks, at the page length of the console. renewTimeout bounds all these reads.
	renewMost    = 50
	renewTimeout = time.Second
)

// pageKey is the key by which pages are shared: a filter without times that count from now.
type pageKey struct {
	filter any
	cursor string
	limit  int
}

type pageResult struct {
	executions []*workflowpb.WorkflowExecutionInfo
	next       []byte
	at         time.Time // of the request
}

// sharedPage reads a page, or returns one that was read a moment ago.
func (o *Operator) sharedPage(ctx context.Context, key pageKey, query string) (pageResult, error) {
	return o.pages.do(ctx, key, func(ctx context.Context) (pageResult, error) {
		ctx, cancel := context.WithTimeout(interactive(ctx), queryTimeout)
		defer cancel()
		select {
		case o.turns <- struct{}{}:
			defer func() { <-o.turns }()
		case <-ctx.Done():
			return pageResult{}, unavailable("The task engine", ctx.Err())
		}
		at := time.Now()
		answer, err := o.page(ctx, query, []byte(key.cursor), key.limit)
		return pageResult{answer.GetExecutions(), answer.GetNextPageToken(), at}, err
	})
}

// refreshed describes the running executions of a page again, unless it is fresh. If that takes too long, it returns the page's entry.
func (o *Operator) refreshed(ctx context.Context, page pageResult) []*workflowpb.WorkflowExecutionInfo {
	if time.Since(page.at) < renewAfter {
		return page.executions
	}
	ctx, cancel := context.WithTimeout(interactive(ctx), renewTimeout)
	defer cancel()
	executions := slices.Clone(page.executions) // the page is shared
	var group errgroup.Group
	group.SetLimit(listReads)
	described := 0
	for i, info := range executions {
		if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING || described == renewMost {
			continue
		}
		described++
		group.Go(func() error {
			now, err := o.described.do(ctx, info.GetExecution().GetRunId(), func(ctx context.Context) (*workflowpb.WorkflowExecutionInfo, error) {
				ctx, cancel := context.WithTimeout(ctx, renewTimeout)
				defer cancel()
				answer, err := o.temporal.DescribeWorkflowExecution(ctx, info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId())
				return answer.GetWorkflowExecutionInfo(), err
			})
			if err == nil && now.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW { // the page has the later run
				executions[i] = now
			}
			return nil
		})
	}
	_ = group.Wait() // returns no error
	return executions
}

// page reads at most size executions after a cursor. It returns Invalid for an invalid cursor.
func (o *Operator) page(
	ctx context.Context, query string, cursor []byte, size int,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	answer, err := o.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: o.namespace, PageSize: int32(size), NextPageToken: cursor, Query: query,
	})
	if _, invalid := errors.AsType[*serviceerror.InvalidArgument](err); invalid && len(cursor) > 0 {
		return nil, &providers.Fault{
			Kind: providers.Invalid, Message: "Invalid request: 'after' is not a cursor of this list.", Param: "after",
			Err: err,
		}
	}
	if err != nil {
		return nil, unavailable("The task engine", fmt.Errorf("list executions: %w", err))
	}
	return answer, nil
}

// each calls do for all executions of a query. It stops at an error of do and returns it.
func (o *Operator) each(ctx context.Context, query string, do func(*workflowpb.WorkflowExecutionInfo) error) error {
	var cursor []byte
	for {
		answer, err := o.page(ctx, query, cursor, pageMost)
		if err != nil {
			return err
		}
		for _, info := range answer.GetExecutions() {
			if err := do(info); err != nil {
				return err
			}
		}
		if cursor = answer.GetNextPageToken(); len(cursor) == 0 {
			return nil
		}
	}
}

// Filter selects tasks; the zero value selects all.
type Filter struct {
	// Kind is an activities.Kind, "" for all.
	Kind                             string
	Token, Model, Channel, Operation string
	Phase                            workflows.Phase
	// Stuck selects those that have been in their phase for longer than usual.
	Stuck bool
	// Since is the earliest creation, and Until the first later one that is not selected.
	Since, Until time.Time
}

// Query returns the filter as a visibility query, which the Temporal UI accepts too. The times of Stuck count from now.
func (f Filter) Query(now time.Time) (string, error) {
	terms := []string{workflows.OfTasks + " AND ExecutionStatus != 'ContinuedAsNew'"} // the later run is listed
	if f.Stuck {
		terms[0] = workflows.StuckQuery(now)
	}
	terms, err := keywords(terms, keyword{"WorkflowType", workflows.TypeOf(activities.Kind(f.Kind)), "kind"},
		keyword{workflows.AttrToken, f.Token, "token"}, keyword{workflows.AttrModel, f.Model, "model"},
		keyword{workflows.AttrChannel, f.Channel, "channel"}, keyword{workflows.AttrOperation, f.Operation, "operation"},
		keyword{workflows.AttrState, string(f.Phase), "state"})
	if err != nil {
		return "", err
	}
	return strings.Join(append(terms, within(f.Since, f.Until)...), " AND "), nil
}

// keyword is a search attribute, its required value ("": any), and the name of the request's parameter.
type keyword struct{ name, value, param string }

func keywords(terms []string, of ...keyword) ([]string, error) {
	for _, k := range of {
		switch {
		case k.value == "":
		case strings.ContainsAny(k.value, `'"\`):
			return nil, providers.InvalidField(k.param, "%q has characters that a query cannot contain.", k.value)
		default:
			terms = append(terms, fmt.Sprintf("%s = '%s'", k.name, k.value))
		}
	}
	return terms, nil
}

// within returns the terms of executions that started since one time and before another; a zero time is no bound.
func within(since, until time.Time) (terms []string) {
	if !since.IsZero() {
		terms = append(terms, fmt.Sprintf("StartTime >= '%s'", since.UTC().Format(time.RFC3339)))
	}
	if !until.IsZero() {
		terms = append(terms, fmt.Sprintf("StartTime < '%s'", until.UTC().Format(time.RFC3339)))
	}
	return terms
}

// Listed is a task as visibility lists it, with a delay of moments.
type Listed struct {
	ID   string          `json:"id"`
	Run  string          `json:"run"`
	Kind activities.Kind `json:"kind"`
	// Operation is the method and path of a call.
	Operation string          `json:"operation,omitempty"`
	Token     string          `json:"token"`
	Model     string          `json:"model"`
	Channel   string          `json:"channel,omitempty"`
	Vendor    string          `json:"vendor,omitempty"`
	Phase     workflows.Phase `json:"phase"`
	// Status is the status of the execution: Running, Completed, …; a failed task is a completed execution.
	Status  string    `json:"status"`
	Created time.Time `json:"created"`
	Closed  time.Time `json:"closed,omitzero"`
	// Tokens and Cost are of an ended call; Cost is nil for a model without a price.
	Tokens int64          `json:"tokens,omitempty"`
	Cost   *pricing.Money `json:"cost,omitempty"`
	// Due is the time by which it should have left its phase; zero if unknown.
	Due time.Time `json:"due,omitzero"`
	// Code is the failure code, "" for others.
	Code string `json:"code,omitempty"`
	// Running: the execution is open.
	Running bool `json:"-"`
}

// Page returns at most limit tasks that match, newest first, after a cursor, "" at first. next is "" at the end; the last page may be
// empty. Pages of the last two seconds are shared, of which fifty running tasks are current.
func (o *Operator) Page(ctx context.Context, filter Filter, cursor []byte, limit int) (tasks []Listed, next []byte, err error) {
	query, err := filter.Query(time.Now())
	if err != nil {
		return nil, nil, err
	}
	answer, err := o.sharedPage(ctx, pageKey{filter, string(cursor), min(limit, pageMost)}, query)
	if err != nil {
		return nil, nil, err
	}
	for _, info := range o.refreshed(ctx, answer) {
		tasks = append(tasks, listed(info))
	}
	return tasks, answer.next, nil
}

func listed(info *workflowpb.WorkflowExecutionInfo) Listed {
	row := Listed{
		ID: info.GetExecution().GetWorkflowId(), Run: info.GetExecution().GetRunId(),
		Kind: activities.KindOf(info.GetExecution().GetWorkflowId()), Operation: attribute(info, workflows.AttrOperation),
		Token: attribute(info, workflows.AttrToken), Model: attribute(info, workflows.AttrModel),
		Channel: attribute(info, workflows.AttrChannel), Vendor: attribute(info, workflows.AttrVendor),
		Phase: phaseOf(info), Status: info.GetStatus().String(), Created: info.GetStartTime().AsTime(),
		Running: info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}
	if info.GetCloseTime() != nil {
		row.Closed = info.GetCloseTime().AsTime()
	}
	if due, err := time.Parse(time.RFC3339, attribute(info, workflows.AttrDue)); err == nil && row.Running {
		row.Due = due
	}
	var m memo // the execution may be a later run of the task
	if found, err := memoField(info, memoTask, &m); found && err == nil {
		row.Created = m.CreatedAt
	}
	var result workflows.Result
	_, _ = memoField(info, workflows.MemoResult, &result) // an unreadable result counts as none
	if result.Failure != nil {
		row.Code = result.Failure.Code
	}
	if call := result.Call; call != nil {
		if row.Tokens = call.Usage.Input + call.Usage.Output; call.Priced {
			row.Cost = new(pricing.Money(call.Cost))
		}
	}
	return row
}

// Indexed is a task for the rebuild of the list of a token.
type Indexed struct {
	TaskID, Token string
	Created       time.Time
	Unfinished    bool
}

// Index calls each once for every task in Temporal that is not being removed, running ones first.
func (o *Operator) Index(ctx context.Context, each func(Indexed) error) error {
	removed, err := o.removals(ctx)
	if err != nil {
		return err
	}
	done := make(map[string]bool) // a reset leaves several runs of a task
	for _, status := range []string{"=", "!="} {
		query := workflows.OfTasks + " AND ExecutionStatus " + status + " 'Running'"
		err := o.each(ctx, query, func(info *workflowpb.WorkflowExecutionInfo) error {
			var m memo
			id := info.GetExecution().GetWorkflowId()
			if found, err := memoField(info, memoTask, &m); err != nil || !found || done[id] {
				return err
			}
			done[id] = true
			if removed[RemoveID(id, m.CreatedAt)] {
				return nil
			}
			return each(Indexed{
				TaskID: id, Token: m.Token, Created: m.CreatedAt, Unfinished: unfinished(info),
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unfinished reports whether the task's result is not written yet. The execution may continue after that.
func unfinished(info *workflowpb.WorkflowExecutionInfo) bool {
	return info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING && info.GetMemo().GetFields()[workflows.MemoResult] == nil
}

// removals returns the running removals by their RemoveID.
func (o *Operator) removals(ctx context.Context) (map[string]bool, error) {
	removed := make(map[string]bool)
	err := o.each(ctx, "WorkflowType = '"+workflows.RemoveType+"' AND ExecutionStatus = 'Running'",
		func(info *workflowpb.WorkflowExecutionInfo) error {
			id := info.GetExecution().GetWorkflowId()
			var r removal
			if found, err := memoField(info, memoRemoval, &r); err != nil {
				return err
			} else if found {
				id = RemoveID(id, r.CreatedAt)
			}
			removed[id] = true
			return nil
		})
	return removed, err
}
