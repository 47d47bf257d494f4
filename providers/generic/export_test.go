package generic

import (
	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// DecodeTask reads a task's status and the links to its results.
func DecodeTask(body []byte) (state providers.VideoStatus, at []string, err error) {
	document, err := upstream.Decode(body)
	if err != nil {
		return state, nil, err
	}
	task := taskOf(document)
	state, err = status(task, links(task), "upstream-credential")
	return state, links(task), err
}
