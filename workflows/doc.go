// Package workflows holds the durable course of a video task: when it submits, polls, archives, and when again. It
// decides; package activities does.
//
// It must not import net/http, Redis, S3, HTTP formats, vendors or package tasks, which is the service over it. Workflow code
// is pure: no clock, random, map iteration, I/O or global.
package workflows
