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
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"golang.org/x/sync/errgroup"

	"modelrelay/providers"
	"modelrelay/workflows"
)

const (
	// pageMost is how many executions one visibility request reads; such requests are few and dear.
	pageMost = 500
	// pageFor is how long a page serves all who ask for the same one: a cluster answers ten visibility queries a second, and
	// an operator's browsers ask again every two seconds.
	pageFor = 2 * time.Second
	// queryTimeout bounds one visibility request. The SDK gives it half of that, so who looks reads within three seconds that
	// there is no answer: one comes in milliseconds, and of millions of executions in a second.
	queryTimeout = 6 * time.Second
	// pagesAtOnce bounds the pages that are read at a time, of different filters.
	pagesAtOnce = 2
	// renewAfter is how old a shared page or a look at one of its tasks may be: then the tasks that run are looked at themselves, which
	// costs no visibility query. A browser that asks every second shows a change within a second and a half.
	renewAfter = 500 * time.Millisecond
	// renewMost is of how many tasks of a page, the length of the console's. renewTimeout bounds all these looks.
	renewMost    = 50
	renewTimeout = time.Second
)

// visibility is the list of a namespace's executions, which the engine brings up to date a moment late.
type visibility struct {
	temporal  client.Client
	namespace string
	pages     *shared[pageAsked, pageRead]
	turns     chan struct{}
	// looks are those at tasks of a page, by run.
	looks *shared[string, *workflowpb.WorkflowExecutionInfo]
}

func newVisibility(temporal client.Client, namespace string) *visibility {
	return &visibility{
		temporal: temporal, namespace: namespace, pages: newShared[pageAsked, pageRead](pageFor), turns: make(chan struct{}, pagesAtOnce),
		looks: newShared[string, *workflowpb.WorkflowExecutionInfo](renewAfter),
	}
}

// pageAsked is what pages are shared by: a visibility query without the times that count from now.
type pageAsked struct {
	filter any
	cursor string
	limit  int
}

// pageRead is a page as visibility has it.
type pageRead struct {
	executions []*workflowpb.WorkflowExecutionInfo
	next       []byte
	at         time.Time // when it was asked for
}

// sharedPage reads a page, or gives the one that was read for another a moment ago.
func (v *visibility) sharedPage(ctx context.Context, asked pageAsked, query string) (pageRead, error) {
	return v.pages.do(ctx, asked, func(ctx context.Context) (pageRead, error) {
		ctx, cancel := context.WithTimeout(looking(ctx), queryTimeout)
		defer cancel()
		select {
		case v.turns <- struct{}{}:
			defer func() { <-v.turns }()
		case <-ctx.Done():
			return pageRead{}, away("The task engine", ctx.Err())
		}
		at := time.Now()
		answer, err := v.page(ctx, query, []byte(asked.cursor), asked.limit)
		return pageRead{answer.GetExecutions(), answer.GetNextPageToken(), at}, err
	})
}

// renewed are the executions of a page, those that run as they are now where the page is no longer fresh. What does not answer
// soon stays as it was.
func (v *visibility) renewed(ctx context.Context, page pageRead) []*workflowpb.WorkflowExecutionInfo {
	if time.Since(page.at) < renewAfter {
		return page.executions
	}
	ctx, cancel := context.WithTimeout(looking(ctx), renewTimeout)
	defer cancel()
	executions := slices.Clone(page.executions) // others have the page, too
	var group errgroup.Group
	group.SetLimit(listLooks)
	looks := 0
	for i, info := range executions {
		if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING || looks == renewMost {
			continue
		}
		looks++
		group.Go(func() error {
			now, err := v.looks.do(ctx, info.GetExecution().GetRunId(), func(ctx context.Context) (*workflowpb.WorkflowExecutionInfo, error) {
				ctx, cancel := context.WithTimeout(ctx, renewTimeout)
				defer cancel()
				answer, err := v.temporal.DescribeWorkflowExecution(ctx, info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId())
				return answer.GetWorkflowExecutionInfo(), err
			})
			if err == nil && now.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW { // a later run is the task
				executions[i] = now
			}
			return nil
		})
	}
	_ = group.Wait() // none fails
	return executions
}

// page reads a page of at most so many, behind a cursor; a cursor that is none is an Invalid fault.
func (v *visibility) page(ctx context.Context, query string, cursor []byte, size int) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	answer, err := v.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: v.namespace, PageSize: int32(size), NextPageToken: cursor, Query: query,
	})
	if _, invalid := errors.AsType[*serviceerror.InvalidArgument](err); invalid && len(cursor) > 0 {
		return nil, &providers.Fault{Kind: providers.Invalid, Message: "Invalid request: 'after' is no cursor of this list.", Param: "after", Err: err}
	}
	if err != nil {
		return nil, away("The task engine", fmt.Errorf("list executions: %w", err))
	}
	return answer, nil
}

// each calls do for up to limit executions of a query (0: all), until it returns an error, which each returns.
func (v *visibility) each(ctx context.Context, query string, limit int, do func(*workflowpb.WorkflowExecutionInfo) error) error {
	var token []byte
	for seen := 0; ; {
		page := pageMost
		if limit > 0 {
			page = min(page, limit-seen)
		}
		answer, err := v.page(ctx, query, token, page)
		if err != nil {
			return err
		}
		for _, info := range answer.GetExecutions() {
			if err := do(info); err != nil {
				return err
			}
		}
		seen += len(answer.GetExecutions())
		token = answer.GetNextPageToken()
		if len(token) == 0 || limit > 0 && seen >= limit {
			return nil
		}
	}
}

// Filter chooses tasks; the zero value chooses all.
type Filter struct {
	Token, Model, Channel string
	Phase                 workflows.Phase
	// Stuck chooses those that have been in their phase for longer than usual.
	Stuck bool
	// Since chooses those created at the time or later, Until those created before it.
	Since, Until time.Time
}

// Query is the filter as a visibility query, which the Temporal UI takes as well. Its times are absolute: those of
// Stuck count from now.
func (f Filter) Query(now time.Time) (string, error) {
	terms := []string{"WorkflowType = 'Video' AND ExecutionStatus != 'ContinuedAsNew'"} // a later run is the task
	if f.Stuck {
		terms[0] = workflows.StuckQuery(now)
	}
	terms, err := keywords(terms, keyword{workflows.AttrToken, f.Token, "token"}, keyword{workflows.AttrModel, f.Model, "model"},
		keyword{workflows.AttrChannel, f.Channel, "channel"}, keyword{workflows.AttrState, string(f.Phase), "state"})
	if err != nil {
		return "", err
	}
	return strings.Join(append(terms, within(f.Since, f.Until)...), " AND "), nil
}

// keyword is a search attribute, the value that it must have ("": any), and the request's own name for it.
type keyword struct{ name, value, param string }

// keywords adds the terms of search attributes.
func keywords(terms []string, of ...keyword) ([]string, error) {
	for _, word := range of {
		switch {
		case word.value == "":
		case strings.ContainsAny(word.value, `'"\`):
			return nil, providers.InvalidField(word.param, "%q has characters that no query takes.", word.value)
		default:
			terms = append(terms, fmt.Sprintf("%s = '%s'", word.name, word.value))
		}
	}
	return terms, nil
}

// within are the terms of executions that were started since one time and before another; a zero time bounds nothing.
func within(since, until time.Time) (terms []string) {
	if !since.IsZero() {
		terms = append(terms, fmt.Sprintf("StartTime >= '%s'", since.UTC().Format(time.RFC3339)))
	}
	if !until.IsZero() {
		terms = append(terms, fmt.Sprintf("StartTime < '%s'", until.UTC().Format(time.RFC3339)))
	}
	return terms
}

// Listed is a task as visibility knows it, a moment late.
type Listed struct {
	ID      string          `json:"id"`
	Run     string          `json:"run"`
	Token   string          `json:"token"`
	Model   string          `json:"model"`
	Channel string          `json:"channel,omitempty"`
	Vendor  string          `json:"vendor,omitempty"`
	Phase   workflows.Phase `json:"phase"`
	// Status is the execution's own: Running, Completed, …; a failed task is a completed execution.
	Status  string    `json:"status"`
	Created time.Time `json:"created"`
	Closed  time.Time `json:"closed,omitzero"`
	// Due is when it should have left its phase; zero where that is not known.
	Due time.Time `json:"due,omitzero"`
	// Code is why it failed, "" for others.
	Code string `json:"code,omitempty"`
	// Running tells that the execution is open.
	Running bool `json:"-"`
}

// Tasks calls each for up to limit tasks of the filter (0: all), running ones first, then those that ended last, until it
// returns an error, which Tasks returns.
func (o *Operator) Tasks(ctx context.Context, filter Filter, limit int, each func(Listed) error) error {
	query, err := filter.Query(time.Now())
	if err != nil {
		return err
	}
	return o.visibility.each(ctx, query, limit, func(info *workflowpb.WorkflowExecutionInfo) error { return each(listed(info)) })
}

// Page reads at most limit tasks of the filter, newest first, behind a cursor, which is empty for the first page. next is
// the cursor behind these, empty at the end; the last page may hold nothing. Who asks for the same page within two seconds
// gets the same tasks, the first fifty that run as they were half a second ago or later.
func (o *Operator) Page(ctx context.Context, filter Filter, cursor []byte, limit int) (tasks []Listed, next []byte, err error) {
	query, err := filter.Query(time.Now())
	if err != nil {
		return nil, nil, err
	}
	answer, err := o.visibility.sharedPage(ctx, pageAsked{filter, string(cursor), min(limit, pageMost)}, query)
	if err != nil {
		return nil, nil, err
	}
	for _, info := range o.visibility.renewed(ctx, answer) {
		tasks = append(tasks, listed(info))
	}
	return tasks, answer.next, nil
}

func listed(info *workflowpb.WorkflowExecutionInfo) Listed {
	attr := func(name string) (value string) {
		if payload := info.GetSearchAttributes().GetIndexedFields()[name]; payload != nil {
			_ = converter.GetDefaultDataConverter().FromPayload(payload, &value) // unreadable is unknown
		}
		return value
	}
	row := Listed{
		ID: info.GetExecution().GetWorkflowId(), Run: info.GetExecution().GetRunId(),
		Token: attr(workflows.AttrToken), Model: attr(workflows.AttrModel), Channel: attr(workflows.AttrChannel), Vendor: attr(workflows.AttrVendor),
		Phase: workflows.Phase(attr(workflows.AttrState)), Status: info.GetStatus().String(), Created: info.GetStartTime().AsTime(),
		Running: info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}
	if info.GetCloseTime() != nil {
		row.Closed = info.GetCloseTime().AsTime()
	}
	if due, err := time.Parse(time.RFC3339, attr(workflows.AttrDue)); err == nil && row.Running {
		row.Due = due
	}
	var m memo // a task that waited for long has several runs, and this may be the last
	if payload := info.GetMemo().GetFields()[memoTask]; payload != nil && converter.GetDefaultDataConverter().FromPayload(payload, &m) == nil {
		row.Created = m.CreatedAt
	}
	var result workflows.Result
	if payload := info.GetMemo().GetFields()[workflows.MemoResult]; payload != nil {
		if converter.GetDefaultDataConverter().FromPayload(payload, &result) == nil && result.Failure != nil {
			row.Code = result.Failure.Code
		}
	}
	return row
}

// Indexed is what the list of a token needs to know of a task.
type Indexed struct {
	TaskID, Token string
	Created       time.Time
	Unfinished    bool
}

// Index calls each once for every task that Temporal knows and that is not being removed, running ones first.
func (o *Operator) Index(ctx context.Context, each func(Indexed) error) error {
	removed, err := o.removals(ctx)
	if err != nil {
		return err
	}
	done := make(map[string]bool) // tasks may have runs that a reset left behind
	for _, status := range []string{"=", "!="} {
		query := "WorkflowType = 'Video' AND ExecutionStatus " + status + " 'Running'"
		err := o.visibility.each(ctx, query, 0, func(info *workflowpb.WorkflowExecutionInfo) error {
			var m memo
			id := info.GetExecution().GetWorkflowId()
			payload := info.GetMemo().GetFields()[memoTask]
			if payload == nil || done[id] {
				return nil
			}
			if err := converter.GetDefaultDataConverter().FromPayload(payload, &m); err != nil {
				return fmt.Errorf("read the memo of %s: %w", id, err)
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

// unfinished tells that a task's end is not written yet. Its execution may run on for a while after that.
func unfinished(info *workflowpb.WorkflowExecutionInfo) bool {
	return info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING && info.GetMemo().GetFields()[workflows.MemoResult] == nil
}

// removals are the removals under way, by their RemoveID.
func (o *Operator) removals(ctx context.Context) (map[string]bool, error) {
	removed := make(map[string]bool)
	err := o.visibility.each(ctx, "WorkflowType = '"+workflows.RemoveType+"' AND ExecutionStatus = 'Running'", 0, func(info *workflowpb.WorkflowExecutionInfo) error {
		id := info.GetExecution().GetWorkflowId()
		if payload := info.GetMemo().GetFields()[memoRemoval]; payload != nil {
			var r removal
			if err := converter.GetDefaultDataConverter().FromPayload(payload, &r); err != nil {
				return fmt.Errorf("read the removal of %s: %w", id, err)
			}
			id = RemoveID(id, r.CreatedAt)
		}
		removed[id] = true
		return nil
	})
	return removed, err
}
