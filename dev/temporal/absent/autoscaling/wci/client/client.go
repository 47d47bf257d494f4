// Package client gives Temporal's server a client of auto-scaled workers that has none: a worker deployment can be created,
// described, promoted and deleted, but not with a compute configuration.
package client

import (
	"context"

	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/auto-scaled-workers/wci/workflow/iface"
	"go.temporal.io/server/common/namespace"
	"go.uber.org/fx"
)

// Client manages the instances that scale the workers of a version of a worker deployment.
type Client interface {
	DescribeWorkerControllerInstance(
		ctx context.Context, in *namespace.Namespace, version *deploymentpb.WorkerDeploymentVersion,
	) (response *iface.QueryDescribeWorkerControllerInstanceResponse, conflictToken []byte, err error)
	UpdateWorkerControllerInstance(
		ctx context.Context, in *namespace.Namespace, version *deploymentpb.WorkerDeploymentVersion, conflictToken []byte, identity string,
		upsert map[string]iface.ScalingGroupSpecUpdate, remove []string,
	) (*iface.UpdateWorkerControllerInstanceResponse, error)
	ValidateWorkerControllerInstanceSpec(
		ctx context.Context, in *namespace.Namespace, version *deploymentpb.WorkerDeploymentVersion, identity string,
		upsert map[string]iface.ScalingGroupSpecUpdate, remove []string,
	) error
	DeleteWorkerControllerInstance(
		ctx context.Context, in *namespace.Namespace, version *deploymentpb.WorkerDeploymentVersion, identity string,
	) error
}

// Module provides the server with the client.
var Module = fx.Provide(func() Client { return absent{} }) //nolint:gochecknoglobals // the server reads this variable

// absent answers as the original does where no version has a compute configuration and none may have one.
type absent struct{}

func (absent) DescribeWorkerControllerInstance(
	context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion,
) (*iface.QueryDescribeWorkerControllerInstanceResponse, []byte, error) {
	return nil, nil, serviceerror.NewNotFound("this version has no compute configuration")
}

func (absent) UpdateWorkerControllerInstance(
	context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion, []byte, string,
	map[string]iface.ScalingGroupSpecUpdate, []string,
) (*iface.UpdateWorkerControllerInstanceResponse, error) {
	return nil, errAbsent()
}

func (absent) ValidateWorkerControllerInstanceSpec(
	context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion, string,
	map[string]iface.ScalingGroupSpecUpdate, []string,
) error {
	return errAbsent()
}

func (absent) DeleteWorkerControllerInstance(
	context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion, string,
) error {
	return nil
}

func errAbsent() error {
	return serviceerror.NewInvalidArgument("the development server has no compute providers")
}
