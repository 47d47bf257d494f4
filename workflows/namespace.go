package workflows

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// Namespace checks and prepares a Temporal namespace: tasks require six search attributes and a retention. It is safe for concurrent use.
type Namespace struct {
	temporal client.Client
	name     string
	cli      string
	// cloud: the namespace is in Temporal Cloud, where tcld replaces the CLI.
	cloud bool
	// complete: all search attributes exist. None is ever removed.
	complete atomic.Bool
}

// NewNamespace returns the namespace of a Temporal client, which the caller closes. cli holds the options of Temporal's CLI.
func NewNamespace(temporal client.Client, name, address, cli string) *Namespace {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	cloud := strings.HasSuffix(host, ".tmprl.cloud") || strings.HasSuffix(host, ".api.temporal.io")
	return &Namespace{temporal: temporal, name: name, cloud: cloud, cli: cli}
}

// Missing is one thing that a namespace lacks.
type Missing struct {
	// What is a clause that describes it. Run is the command that adds it.
	What, Run string
	// Code is namespace, attribute or retention. Values are the variable parts of What, for messages in other languages.
	Code   string
	Values map[string]string
}

// MissingError lists what a namespace lacks and this program cannot add itself.
type MissingError struct{ Missing []Missing }

// Error returns what the namespace lacks, then the commands.
func (e *MissingError) Error() string {
	what, run := make([]string, len(e.Missing)), make([]string, len(e.Missing))
	for i, lack := range e.Missing {
		what[i], run[i] = lack.What, lack.Run
	}
	return strings.Join(what, "; ") + "; run: " + strings.Join(run, " && ")
}

// Check searches for what the namespace lacks, for this retention of outputs. It returns nil, a *MissingError, or why it could not check.
func (n *Namespace) Check(ctx context.Context, retention time.Duration) error {
	var lacks []Missing
	lack, err := n.retention(ctx, retention)
	if _, none := errors.AsType[*serviceerror.NamespaceNotFound](err); none {
		return &MissingError{[]Missing{{
			What: fmt.Sprintf("there is no namespace %q", n.name), Run: n.create(retention), Code: "namespace",
			Values: map[string]string{"namespace": n.name},
		}}}
	}
	if err != nil {
		return err
	}
	missing, err := n.missing(ctx)
	if err != nil {
		return err
	}
	for _, name := range missing {
		lacks = append(lacks, n.attribute(name))
	}
	if lack != nil {
		lacks = append(lacks, *lack)
	}
	if len(lacks) > 0 {
		return &MissingError{lacks}
	}
	return nil
}

// Ensure adds the missing search attributes. Where the server does not permit that, it returns a *MissingError with a command for each.
func (n *Namespace) Ensure(ctx context.Context) error {
	missing, err := n.missing(ctx)
	if err != nil || len(missing) == 0 {
		return err
	}
	add := make(map[string]enumspb.IndexedValueType, len(missing))
	for _, name := range missing {
		add[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	_, err = n.temporal.OperatorService().AddSearchAttributes(ctx,
		&operatorservice.AddSearchAttributesRequest{Namespace: n.name, SearchAttributes: add})
	switch {
	case err == nil:
		return nil
	case isManaged(err):
		lacks := make([]Missing, len(missing))
		for i, name := range missing {
			lacks[i] = n.attribute(name)
		}
		return &MissingError{lacks}
	}
	return fmt.Errorf("add search attributes: %w", err)
}

func (n *Namespace) missing(ctx context.Context) (missing []string, err error) {
	if n.complete.Load() {
		return nil, nil
	}
	have, err := n.temporal.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: n.name})
	switch {
	case isManaged(err):
		missing, err = n.unsearchable(ctx)
	case err != nil:
		err = fmt.Errorf("list search attributes: %w", err)
	default:
		for _, name := range SearchAttributes() {
			if _, ok := have.GetCustomAttributes()[name]; !ok {
				missing = append(missing, name)
			}
		}
	}
	if err == nil && len(missing) == 0 {
		n.complete.Store(true)
	}
	return missing, err
}

// unsearchable returns the search attributes that no query accepts, for servers that do not list them.
func (n *Namespace) unsearchable(ctx context.Context) (missing []string, err error) {
	for _, name := range SearchAttributes() {
		_, err := n.temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: n.name, Query: name + " = ''"})
		if _, unknown := errors.AsType[*serviceerror.InvalidArgument](err); unknown {
			missing = append(missing, name)
		} else if err != nil {
			return nil, fmt.Errorf("check the search attribute %s: %w", name, err)
		}
	}
	return missing, nil
}

// isManaged reports whether the server denies this client the set-up of namespaces, or does not offer it.
func isManaged(err error) bool {
	_, denied := errors.AsType[*serviceerror.PermissionDenied](err)
	_, unknown := errors.AsType[*serviceerror.Unimplemented](err)
	return denied || unknown
}

func (n *Namespace) attribute(name string) Missing {
	lack := Missing{What: fmt.Sprintf("namespace %q lacks the search attribute %s", n.name, name), Code: "attribute"}
	lack.Values = map[string]string{"namespace": n.name, "name": name}
	lack.Run = fmt.Sprintf("temporal operator search-attribute create --namespace %s --name %s --type Keyword %s", n.name, name, n.cli)
	if n.cloud {
		lack.Run = fmt.Sprintf(`tcld namespace search-attributes add --namespace %s --search-attribute "%s=Keyword"`, n.name, name)
	}
	return lack
}

// RequiredRetention returns the retention that a namespace requires for tasks whose outputs have this retention.
func RequiredRetention(retention time.Duration) time.Duration { return retention + retentionSlack }

// retention returns what the namespace's retention lacks for outputs with this retention; nil if it suffices.
func (n *Namespace) retention(ctx context.Context, retention time.Duration) (*Missing, error) {
	answer, err := n.temporal.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: n.name})
	if err != nil {
		return nil, fmt.Errorf("describe namespace %q: %w", n.name, err)
	}
	current, needed := answer.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(), RequiredRetention(retention)
	if current >= needed {
		return nil, nil
	}
	lack := Missing{What: fmt.Sprintf("namespace %q keeps closed workflows for %s; video.retention and background.retention need %s", n.name,
		current, needed), Code: "retention"}
	lack.Values = map[string]string{"namespace": n.name, "kept": current.String(), "needed": needed.String()}
	lack.Run = fmt.Sprintf("temporal operator namespace update --namespace %s --retention %dh %s", n.name, unitsFor(needed, time.Hour), n.cli)
	if n.cloud {
		lack.Run = fmt.Sprintf("tcld namespace retention set --namespace %s --retention-days %d", n.name, unitsFor(needed, day))
	}
	return &lack, nil
}

const day = 24 * time.Hour

// unitsFor returns the number of units that cover d.
func unitsFor(d, unit time.Duration) int { return int((d + unit - 1) / unit) }

func (n *Namespace) create(retention time.Duration) string {
	if n.cloud {
		return fmt.Sprintf("tcld namespace create --namespace %s --retention-days %d --region …", n.name,
			unitsFor(RequiredRetention(retention), day))
	}
	return fmt.Sprintf("temporal operator namespace create --namespace %s --retention %dh %s", n.name,
		unitsFor(RequiredRetention(retention), time.Hour), n.cli)
}
