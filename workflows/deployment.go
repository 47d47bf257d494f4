package workflows

import (
	"context"
	"errors"
	"fmt"
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
type Version struct{ Deployment, BuildID string }

// deploymentTimeout bounds the look for a deployment.
const deploymentTimeout = 10 * time.Second

// versioned are the options of workers of the version. Where the server does not tell versions apart, or does not let this client know,
// they say nothing of it, and the log says why. One that is not current gets no tasks: the log has the command.
func (w *Worker) versioned(ctx context.Context, options worker.Options) worker.Options {
	v := w.opts.Version
	if v.Deployment == "" {
		return options
	}
	ctx, cancel := context.WithTimeout(ctx, deploymentTimeout)
	defer cancel()
	current := true
	known, err := w.temporal.WorkerDeploymentClient().GetHandle(v.Deployment).Describe(ctx, client.WorkerDeploymentDescribeOptions{})
	_, none := errors.AsType[*serviceerror.NotFound](err)
	switch {
	case isManaged(err):
		w.opts.Log.Warn("the server does not tell versions of workers apart: this worker takes every task, as without worker.deployment", "err", err)
		return options
	case none:
		current = false
	case err != nil:
		w.opts.Log.Warn("nobody can tell whether the worker's version is current", "deployment", v.Deployment, "build_id", v.BuildID, "err", err)
	default:
		now := known.Info.RoutingConfig.CurrentVersion
		current = now != nil && now.BuildID == v.BuildID
	}
	if !current {
		w.opts.Log.Warn("this worker gets no tasks until its version is the current one", "deployment", v.Deployment, "build_id", v.BuildID, "run", v.Promote())
	}
	options.DeploymentOptions = worker.DeploymentOptions{
		UseVersioning:             true,
		Version:                   worker.WorkerDeploymentVersion{DeploymentName: v.Deployment, BuildID: v.BuildID},
		DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	}
	return options
}

// Promote is the command that makes the version the current one.
func (v Version) Promote() string {
	return fmt.Sprintf("temporal worker deployment set-current-version --deployment-name %s --build-id %s", v.Deployment, v.BuildID)
}
