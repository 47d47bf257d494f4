// Package settings holds what the embedded stack and the compose files agree on, so that a gateway finds the
// same namespace, search attributes and bucket whichever of the two it runs on. It imports nothing of the stack.
package settings

import "time"

const (
	// Namespace is the Temporal namespace of all tasks.
	Namespace = "default"
	// TaskQueue is the task queue the worker polls.
	TaskQueue = "video"
	// Retention is how long Temporal keeps a closed task: the gateway asks for `video.retention` (three days unless
	// set) and four days more.
	Retention = 7 * 24 * time.Hour
	// Bucket is where the archive lives.
	Bucket = "videos"
	// Region is the region the object stores answer to.
	Region = "us-east-1"
	// MinIOVersion is the version of MinIO's module that is compiled.
	MinIOVersion = "v0.0.0-20260212201848-7aac2a2c5b7c"
)

// The default addresses of the services, on either stack.
const (
	TemporalAddress = "127.0.0.1:7233"
	UIAddress       = "127.0.0.1:8233"
	RedisAddress    = "127.0.0.1:6379"
	StoreAddress    = "127.0.0.1:9000"
	UpstreamAddress = "127.0.0.1:9100"
	GatewayAddress  = "127.0.0.1:8080"
	MetricsAddress  = "127.0.0.1:9464" // the gateway's
)

// The default credentials of the object store. It is served on loopback only.
const (
	AccessKey = "modelrelay"
	SecretKey = "modelrelay-dev" //nolint:gosec // a known default, on loopback only
)

// SearchAttributes names the search attributes of a task, all of type Keyword.
func SearchAttributes() []string {
	return []string{"TaskModel", "TaskChannel", "TaskVendor", "TaskToken", "TaskState", "TaskOperation", "TaskDue"}
}

// DynamicConfig returns the Temporal settings both stacks run with, by their dynamic configuration keys.
func DynamicConfig() map[string]any {
	return map[string]any{
		// The queue readers of a shard ask at most 20 times a second by default, which rounds every step of a
		// workflow up to 50 ms where there are few shards.
		"history.transferProcessorMaxPollRPS": 500,
		"history.timerProcessorMaxPollRPS":    500,
		// An execution is deleted after the server has noted that its end was worked off. It notes that every 30 seconds by
		// default, and a deletion that came before is tried again with a backoff of minutes.
		"history.transferProcessorUpdateAckInterval": "1s",
		// Listing and counting tasks: the default of 10 a second is one impatient user.
		"frontend.namespaceRPS.visibility": 200,
		// One machine under load should show its own limits, not the frontend's default of 2,400 calls a second.
		"frontend.rps":          20000,
		"frontend.namespaceRPS": 20000,
		// The workers' queue serves tokens in turn, so that a token that creates very many tasks at once delays only its own.
		"matching.enableFairness": true,
		// A task queue of one process gains nothing by four parts, between which tasks and those who wait for them are sent on.
		"matching.numTaskqueueReadPartitions":  1,
		"matching.numTaskqueueWritePartitions": 1,
		// Nothing calls outside.
		"frontend.enableServerVersionCheck": false,
	}
}
