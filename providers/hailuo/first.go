package hailuo

import (
	"context"
	"net/url"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// firstJob reads a job of the first API. A failed job has its reason in the members of a refused poll, which is a fault.
func (v *Videos) firstJob(ctx context.Context, to providers.Target, ticket providers.Ticket) (upstream.Doc, error) {
	answer, err := v.Jobs.Do(ctx, to, upstream.JobRequest{Path: "/v1/query/video_generation?task_id=" + url.QueryEscape(ticket.Job)})
	if err != nil {
		return nil, err
	}
	job, err := upstream.Decode(answer.Body)
	if err != nil {
		return nil, err
	}
	if code := string(job.Get("base_resp.status_code")); code != "" && code != "0" && job.Get("status") != "Fail" {
		return nil, v.Jobs.Refuse(answer, statusOf(code), to.Key, false)
	}
	return job, nil
}

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
	job, err := v.firstJob(ctx, to, ticket)
	id := job.Get(fileField)
	if err != nil || id == "" {
		return "", err
	}
	found, err := v.ask(ctx, to, upstream.JobRequest{Path: "/v1/files/retrieve?file_id=" + url.QueryEscape(string(id))})
	return string(found.Get("file.download_url", "file.backup_download_url")), err
}
