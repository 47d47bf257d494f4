package hailuo

import (
	"cmp"
	"context"
	"net/url"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// firstJob is the first API's job. A refused poll is a fault.
type firstJob struct {
	Status upstream.Loose `json:"status"`
	FileID upstream.Loose `json:"file_id"`
	Width  upstream.Loose `json:"video_width"`
	Height upstream.Loose `json:"video_height"`
	said
}

// firstJob reads the job. A failed job has its reason in the members of a refused poll.
func (v *Videos) firstJob(ctx context.Context, to providers.Target, ticket providers.Ticket) (j firstJob, err error) {
	answer, err := v.Jobs.Do(ctx, to, upstream.JobRequest{Path: "/v1/query/video_generation?task_id=" + url.QueryEscape(ticket.Job)})
	if err != nil {
		return j, err
	}
	if err := upstream.Decode(answer.Body, &j); err != nil {
		return j, err
	}
	if code := string(j.BaseResp.StatusCode); code != "" && code != "0" && j.Status != "Fail" {
		return j, v.Jobs.Refuse(answer, statusOf(code), to.Key, false)
	}
	return j, nil
}

// VideoLinks implements upstream.Record. firstLink returns the link.
func (firstJob) VideoLinks() []string { return nil }

// VideoStatus implements upstream.Record.
func (j firstJob) VideoStatus(key providers.Secret) (providers.VideoStatus, error) {
	if j.Status == "Fail" {
		code, words := string(j.BaseResp.StatusCode), string(j.BaseResp.StatusMsg)
		if code == "0" { // this is the poll's own code
			code, words = "", ""
		}
		// The vendor does not say of these models that a failed job costs nothing.
		return upstream.FailedJob(string(j.Status), failureCode(code), code, words, false, key), nil
	}
	s, err := upstream.States{Queued: "Preparing Queueing", Done: "Success", Life: linkLife}.Status(j.Status, []string{string(j.FileID)})
	if s.State == providers.JobDone {
		s.Width, s.Height = j.Width.Pixels(), j.Height.Pixels()
	}
	return s, err
}

// firstLink asks for the link to the job's file.
func (v *Videos) firstLink(ctx context.Context, to providers.Target, ticket providers.Ticket) (string, error) {
	j, err := v.firstJob(ctx, to, ticket)
	if err != nil || j.FileID == "" {
		return "", err
	}
	answer, err := v.do(ctx, to, upstream.JobRequest{Path: "/v1/files/retrieve?file_id=" + url.QueryEscape(string(j.FileID))})
	if err != nil {
		return "", err
	}
	var found struct {
		File struct {
			DownloadURL upstream.Loose `json:"download_url"`
			BackupURL   upstream.Loose `json:"backup_download_url"`
		} `json:"file"`
	}
	if err := upstream.Decode(answer.Body, &found); err != nil {
		return "", err
	}
	return string(cmp.Or(found.File.DownloadURL, found.File.BackupURL)), nil
}
