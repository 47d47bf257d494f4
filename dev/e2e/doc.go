// Package e2e drives the real gateway binary with real clients over the real Temporal server, Redis and S3 store of the
// development stack, and kills any of them. Only the upstream vendors are fakes.
//
// Without an environment variable the gate's set runs. It needs nginx, chromium and what "npm ci" installs in dev/node.
// MODELRELAY_TEST_FULL=1 runs all tests; they also need caddy, haproxy, and "npm ci" in dev/node/agents.
// MODELRELAY_TEST_PARTS=production runs all tests on the services that production has, and those that are for such services alone.
// -short leaves all of it out.
package e2e
