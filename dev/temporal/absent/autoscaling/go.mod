// This module replaces go.temporal.io/auto-scaled-workers in the development stack. Temporal's server imports that module to start
// workers on AWS, Google Cloud and Kubernetes, which is switched off by default. The original imports the clients of all these
// services, a quarter of what the stack compiled. It has no requirements of its own: it is compiled only as a part of the module dev.
module go.temporal.io/auto-scaled-workers

go 1.26.8
