package hailuo

import (
	"context"
	"net/url"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// firstJob is the first API's job. A refusal of the look at it is a fault.
type firstJob struct {
	Status upstream.Loose `json:"status"`
	FileID upstream.Loose `json:"file_id"`
	Width  upstream.Loose `json:"video_width"`
	Height upstream.Loose `json:"video_height"`
	said
}

// firstRead asks for the job. One that failed has its reason where others have that of a refused look.
func (v *Videos) firstRead(ctx context.Context, to providers.Target, ticket providers.Ticket) (j firstJob, err error) {
	answer, err := v.jobs.Do(ctx, to, upstream.JobRequest{Path: "/v1/query/video_generation?task_id=" + url.QueryEscape(ticket.Job)})
	if err != nil {
		return j, err
	}
	if err := upstream.Decode(answer.Body, &j); err != nil {
		return j, err
	}
	if code := string(j.BaseResp.StatusCode); code != "" && code != "0" && j.Status != "Fail" {
		return j, v.jobs.Refuse(answer, statusOf(code), to.Key, false)
	}
	return j, nil
}

// firstStatus reads the first API's words. An unknown one, and none at all, means still running.
func (v *Videos) firstStatus(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	j, err := v.firstRead(ctx, to, ticket)
	if err != nil {
		return providers.VideoStatus{}, err
	}
	s := providers.VideoStatus{
		State: providers.JobRunning, Progress: -1, Word: providers.Cut(string(j.Status), providers.WordLimit),
	}
	switch j.Status {
	case "Preparing", "Queueing":
		s.State = providers.JobQueued
	case "Success":
		if j.FileID == "" {
			return providers.VideoStatus{}, upstream.BrokenAnswer("success without a file", nil)
		}
		s.State, s.Outputs, s.Dies = providers.JobDone, 1, time.Now().Add(linkLife)
		s.Width, s.Height = j.Width.Pixels(), j.Height.Pixels()
	case "Fail":
		code, words := string(j.BaseResp.StatusCode), string(j.BaseResp.StatusMsg)
		if code == "0" { // it speaks of the look, which succeeded
			code, words = "", ""
		}
		// The vendor does not say of these models that a failed job costs nothing.
		return upstream.FailedJob(string(j.Status), failureCode(code), code, words, false, to.Key), nil
	}
	return s, nil
}

// firstLink asks for the link to the job's file.
func (v *Videos) firstLink(ctx context.Context, to providers.Target, ticket providers.Ticket) (string, error) {
	j, err := v.firstRead(ctx, to, ticket)
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
	if found.File.DownloadURL == "" {
		return string(found.File.BackupURL), nil
	}
	return string(found.File.DownloadURL), nil
}
