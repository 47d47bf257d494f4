package activities

import (
	"strings"
)

// The kinds of tasks.
const (
	KindVideo Kind = "video"
	KindCall  Kind = "call"
)

// Kind is a kind of task.
type Kind string

// The prefixes of task ids. A response has its own, which its format's clients expect.
const (
	VideoIDs    = "video_"
	CallIDs     = "call_"
	ResponseIDs = "resp_"
)

// KindOf returns the kind of the task with the id.
func KindOf(taskID string) Kind {
	if strings.HasPrefix(taskID, VideoIDs) {
		return KindVideo
	}
	return KindCall
}

// EventsOf returns the first word of the types of a task's events.
func EventsOf(taskID string) string {
	switch {
	case strings.HasPrefix(taskID, VideoIDs):
		return "video"
	case strings.HasPrefix(taskID, ResponseIDs):
		return "response"
	default:
		return "task"
	}
}
