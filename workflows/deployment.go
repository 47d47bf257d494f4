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

// Version is the version of a worker in Temporal's worker deployments. The zero Version is unversioned.
//
// Tasks upgrade automatically: the current version does each step, whichever did the step before. Tasks may take a day; pinned ones would
// need old workers as long. Each version replays the histories of earlier ones: see Revision.
type Version struct {
	Deployment, BuildID string
	// Namespace and CLI complete the command of Promote. CLI holds the connection options of Temporal's CLI.
	Namespace, CLI string
}

const deploymentTimeout = 10 * time.Second

// versioned adds the version to the options of workers. It adds nothing, and logs the reason, where the server has no worker
// deployments or denies this client access to them. If the version is not the current one, it logs the command that makes it so.
func (w *Worker) versioned(ctx context.Context, options worker.Options) worker.Options {
	v := w.opts.Version
	if v.Deployment == "" {
		return options
	}
	current, err := v.Current(ctx, w.temporal)
	switch {
	case isManaged(err):
		w.opts.Log.Warn("worker.deployment has no effect: the server supports no worker deployments for this client",
			"error", err)
		return options
	case err != nil:
		w.opts.Log.Warn("cannot check whether this worker's version is the current one", "deployment", v.Deployment, "build_id", v.BuildID,
			"error", err)
	case !current:
		w.opts.Log.Warn("this worker gets no tasks until its version is the current one", "deployment", v.Deployment, "build_id", v.BuildID,
			"run", v.Promote())
	}
	options.DeploymentOptions = worker.DeploymentOptions{
		UseVersioning:             true,
		Version:                   worker.WorkerDeploymentVersion{DeploymentName: v.Deployment, BuildID: v.BuildID},
		DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	}
	return options
}

// Current reports whether the version is the deployment's current one, which gets the tasks; false for an unknown deployment.
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

// ShellWord returns the word as one argument of a POSIX shell, quoted if necessary.
func ShellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
