package workflows

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Version is what a worker is of, for Temporal to tell versions apart; the zero Version is not told apart from others.
//
// Tasks upgrade automatically: each step of a task is done by the version that is current then, whichever began it. A task may
// wait in a queue for a day and run for hours, so that pinned to its first version it would keep old workers alive as long.
// Revisions make each version replay the histories of the versions before it.
type Version struct {
	Deployment, BuildID string
	// Namespace and CLI are for the command that makes the version the current one: CLI holds the options of Temporal's CLI
	// that reach the server.
	Namespace, CLI string
}

// deploymentTimeout bounds the request for a deployment.
const deploymentTimeout = 10 * time.Second

// versioned adds the version to the options of workers. Where the server has no worker deployments, or does not let this
// client use them, it adds nothing, and the log has the reason. A version that is not current gets no tasks: the log has the
// command that makes it current.
func (w *Worker) versioned(ctx context.Context, options worker.Options) worker.Options {
	v := w.opts.Version
	if v.Deployment == "" {
		return options
	}
	current, err := v.Current(ctx, w.temporal)
	switch {
	case isManaged(err):
		w.opts.Log.Warn("the server does not tell versions of workers apart: this worker takes every task, as without worker.deployment", "err", err)
		return options
	case err != nil:
		w.opts.Log.Warn("it is unknown whether the worker's version is the current one", "deployment", v.Deployment, "build_id", v.BuildID, "err", err)
	case !current:
		w.opts.Log.Warn("this worker gets no tasks until its version is the current one", "deployment", v.Deployment, "build_id", v.BuildID, "run", v.Promote())
	}
	options.DeploymentOptions = worker.DeploymentOptions{
		UseVersioning:             true,
		Version:                   worker.WorkerDeploymentVersion{DeploymentName: v.Deployment, BuildID: v.BuildID},
		DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	}
	return options
}

// Current reports whether the server gives tasks to workers of the version. A server that has not seen the deployment yet does
// not.
func (v Version) Current(ctx context.Context, temporal client.Client) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, deploymentTimeout)
	defer cancel()
	known, err := temporal.WorkerDeploymentClient().GetHandle(v.Deployment).Describe(ctx, client.WorkerDeploymentDescribeOptions{})
	if _, none := errors.AsType[*serviceerror.NotFound](err); none {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("describe the worker deployment %q: %w", v.Deployment, err)
	}
	now := known.Info.RoutingConfig.CurrentVersion
	return now != nil && now.BuildID == v.BuildID, nil
}

// Promote returns the command that makes the version the current one.
func (v Version) Promote() string {
	return fmt.Sprintf("temporal worker deployment set-current-version --deployment-name %s --build-id %s --namespace %s %s",
		ShellWord(v.Deployment), ShellWord(v.BuildID), ShellWord(v.Namespace), v.CLI)
}

// ShellWord quotes a word of a command where a shell would read it otherwise.
func ShellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
