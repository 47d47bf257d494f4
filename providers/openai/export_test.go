package openai

import "modelrelay/providers"

// DecodeJob reads a job's status and the link to its result.
func DecodeJob(body []byte) (status providers.VideoStatus, link string, err error) {
	j, err := decode(body)
	if err != nil {
		return status, "", err
	}
	return j.status(), j.link(), nil
}
