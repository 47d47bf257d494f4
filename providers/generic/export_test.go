package generic

import (
	"modelrelay/providers"
)

// DecodeTask reads a task's status and the links to its results.
func DecodeTask(body []byte) (status providers.VideoStatus, links []string, err error) {
	task, err := decode(body)
	if err != nil {
		return status, nil, err
	}
	return statusOf(task, "upstream-credential"), linksOf(task), nil
}
