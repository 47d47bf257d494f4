// Package iface has the types of auto-scaled workers that Temporal's server names. The server fills them from its API and passes
// them to package client.
package iface

import (
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
)

// ComputeProviderType is the kind of service that starts workers.
type ComputeProviderType string

// ComputeProviderSpec configures the service that starts the workers of a scaling group.
type ComputeProviderSpec struct {
	ProviderType  ComputeProviderType
	Config        *commonpb.Payload
	NexusEndpoint string
}

// ScalingAlgorithmType is the kind of rule that decides how many workers run.
type ScalingAlgorithmType string

// ScalingAlgorithmSpec configures that rule.
type ScalingAlgorithmSpec struct {
	ScalingAlgorithm ScalingAlgorithmType
	Config           *commonpb.Payload
}

// ScalingGroupSpec configures the workers of some types of task queue.
type ScalingGroupSpec struct {
	TaskTypes []enumspb.TaskQueueType
	Compute   ComputeProviderSpec
	Scaling   *ScalingAlgorithmSpec
}

// ScalingGroupSpecUpdate replaces the fields of a group that the mask names.
type ScalingGroupSpecUpdate struct {
	Spec       ScalingGroupSpec
	UpdateMask []string
}

// WorkerControllerInstanceSpec is the configuration of one version of a worker deployment.
type WorkerControllerInstanceSpec struct {
	ScalingGroupSpecs map[string]ScalingGroupSpec
}

// ValidationResult is the outcome of a validation.
type ValidationResult string

// ValidationResultFailed marks a configuration that does not work.
const ValidationResultFailed ValidationResult = "failed"

// ValidationStatus is the last validation of a configuration.
type ValidationStatus struct {
	LastValidationTime time.Time
	Status             ValidationResult
	ErrMessage         string
}

// QueryDescribeWorkerControllerInstanceResponse is an instance with its configuration.
type QueryDescribeWorkerControllerInstanceResponse struct {
	Spec             *WorkerControllerInstanceSpec
	ValidationStatus *ValidationStatus
}

// UpdateWorkerControllerInstanceResponse is the configuration after an update.
type UpdateWorkerControllerInstanceResponse struct {
	Spec *WorkerControllerInstanceSpec
}
