package vendorc

import (
	"net/http"
	"time"

	"modelrelay/providers"
)

// Sign signs a request as of a time.
func Sign(req *http.Request, body []byte, key providers.Secret, now time.Time) {
	sign(req, body, key, now)
}

// DecodeResult decodes a 2xx answer to a poll.
func DecodeResult(body []byte) (providers.VideoStatus, string, error) {
	r, err := decode(&http.Response{StatusCode: http.StatusOK}, body)
	if err != nil {
		status, err := jobFailure(err, "")
		return status, "", err
	}
	status, err := r.status()
	return status, r.link(), err
}
