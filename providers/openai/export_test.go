package openai

import (
	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// DecodeJob reads a job's status and the link to its result.
func DecodeJob(body []byte) (status providers.VideoStatus, link string, err error) {
	var j job
	if err := upstream.Decode(body, &j); err != nil {
		return status, "", err
	}
	return j.status(), j.link(), nil
}
