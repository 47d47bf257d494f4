package hailuo

import (
	"context"
	"net/url"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

func firstStatus(job upstream.Doc, key providers.Secret) (providers.VideoStatus, error) {
	state := job.Get("status")
	if state == "Fail" {
		code, words := string(job.Get("base_resp.status_code")), string(job.Get("base_resp.status_msg"))
		if code == "0" { // this is the poll's own code
			code, words = "", ""
		}
		// For these models the vendor does not document that a failed job is free.
		return upstream.FailedJob(string(state), failureCode(code), code, words, false, key), nil
	}
	s, err := upstream.States{Queued: "Preparing Queueing", Done: "Success", Life: linkLife}.Status(state, job.Texts(fileField))
	if s.State == providers.JobDone {
		s.Width, s.Height = job.Get("video_width").Pixels(), job.Get("video_height").Pixels()
	}
	return s, err
}

const fileField = "file_id"

// firstLink requests the link to the job's file.
func (v *Videos) firstLink(ctx context.Context, to providers.Target, ticket providers.Ticket) (string, error) {
	job, err := v.Record(ctx, to, ticket)
	id := job.Get(fileField)
	if err != nil || id == "" {
		return "", err
	}
	found, err := v.Jobs.Read(ctx, to, upstream.JobRequest{Path: "/v1/files/retrieve?file_id=" + url.QueryEscape(string(id))})
	return string(found.Get("file.download_url", "file.backup_download_url")), err
}
