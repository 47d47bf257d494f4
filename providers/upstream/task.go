package upstream

import (
	"strconv"
	"strings"

	"modelrelay/providers"
)

// TaskStatus maps the record of a job in OpenAI's format for videos, or in a similar format of a gateway. A finished job has outputs
// videos. An unknown status, or none, means running. codes are the paths of the code of a failed job.
func TaskStatus(job Doc, outputs int, key providers.Secret, codes ...string) providers.VideoStatus {
	word := providers.Cut(string(job.Get("status")), providers.WordLimit)
	s := providers.VideoStatus{
		State: providers.JobRunning, Progress: job.Get("progress").Percent(), VendorState: word, Seconds: job.Get("seconds", "duration").Number(),
	}
	if s.Width, s.Height = job.Get("size").Dimensions(); s.Width == 0 {
		s.Width, s.Height = job.Get("width").Pixels(), job.Get("height").Pixels()
	}
	if s.Width == 0 || s.Height == 0 {
		s.Width, s.Height = 0, 0
	}
	switch word = strings.ToLower(word); word {
	case "queued", "not_start", "submitted", "pending":
		s.State = providers.JobQueued
	case "completed", "done", "succeeded", "success":
		s.State, s.Outputs, s.Took = providers.JobDone, outputs, Took(job.Get("created_at"), job.Get("completed_at"))
		s.ExpiresAt = job.Get("expires_at").Time()
	case "failed", "failure", "error", "cancelled", "canceled", "expired", "rejected":
		s.State = providers.JobFailed
		failure := providers.VideoFailure{
			Code:    providers.Cut(string(job.Get(codes...)), providers.WordLimit),
			Message: providers.Reason(string(job.Get("error.message", "error", "fail_reason")), key),
		}
		if failure.Code == "" {
			failure.Code = "upstream_" + word
		}
		if failure.Message == "" {
			failure.Message = "The upstream's job ended as " + strconv.Quote(s.VendorState) + "."
		}
		s.Failure = &failure
	}
	return s
}
