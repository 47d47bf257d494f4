package openai

import (
	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// DecodeJob reads a job's status and the link to its result.
func DecodeJob(body []byte) (status providers.VideoStatus, link string, err error) {
	job, err := upstream.Decode(body)
	return upstream.TaskStatus(job, 1, "", "error.code"), linkOf(job), err
}
