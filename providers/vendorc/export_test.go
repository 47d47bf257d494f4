package vendorc

import (
	"net/http"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Sign signs a request as of a time.
func Sign(req *http.Request, body []byte, key providers.Secret, now time.Time) {
	sign(req, body, key, now)
}

// DecodeResult decodes an answer to a poll.
func DecodeResult(body []byte) (providers.VideoStatus, string, error) {
	job, err := upstream.Decode(body)
	if err != nil {
		return providers.VideoStatus{}, "", err
	}
	s, err := status(job, links(job), "")
	return s, links(job)[0], err
}
