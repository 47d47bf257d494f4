// Package e2e drives the real gateway binary with real clients over the real Temporal server, Redis and S3 store of the
// development stack, and kills any of them. Only the upstream vendors are fakes. -short leaves all of it out.
package e2e
