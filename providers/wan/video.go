// Package wan adapts the video jobs of Alibaba Cloud's Model Studio (DashScope): Wan and HappyHorse.
//
// Of the product it imports only providers and providers/upstream.
package wan

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: alibabacloud.com/help/en/model-studio (wan3-video-generation-api-reference, the references of
// text-to-video and image-to-video, manage-asynchronous-tasks, error-code), dashscope/dashscope-sdk-python (paths, cancel, the
// word SUSPENDED), vercel/ai packages/alibaba.

// BaseURL is the vendor's own address in China. Singapore's is https://dashscope-intl.aliyuncs.com/api/v1, and workspaces have hosts
// of their own.
const BaseURL = "https://dashscope.aliyuncs.com/api/v1"

const (
	apiPath = "/api/v1"
	// leastPoll is the shortest interval between two polls that the vendor permits.
	leastPoll = 15 * time.Second
	// jobLife is how long a job and the link to its result live from the job's end.
	jobLife = 24 * time.Hour
)

// Videos implements the jobs of video-synthesis. The vendor's list of jobs bears nothing of a request, so a lost one cannot be
// found.
type Videos struct{ upstream.Linked[job] }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	v := &Videos{upstream.Linked[job]{
		Paced: providers.Pace{Least: leastPoll},
		Jobs: upstream.NewJobs(client, upstream.JobVendor{Name: "wan", Classify: classify, Failed: func(code string) string {
			as, _ := failureCode(code)
			return as
		}}), UnknownJob: upstream.NoJob,
	}}
	v.Read = v.job
	return v
}

// handle is the adapter's data of a ticket: only the host that made a job knows it.
type handle struct {
	Base string `json:"base"`
}

// Submit starts a job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	to = based(to, providers.Ticket{})
	create, err := request(ctx, to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	var made job
	if err := v.Jobs.Read(ctx, to, create, &made); err != nil {
		return providers.Ticket{}, err
	}
	return upstream.NewTicket(made.Output.TaskID, handle{to.Channel.BaseURL})
}

// based returns the target with the base URL of a job: that of its ticket, otherwise the channel's, which may lack the path.
func based(to providers.Target, ticket providers.Ticket) providers.Target {
	var kept handle
	_ = json.Unmarshal(ticket.Data, &kept) // errors leave it empty; then the channel's URL is used
	to.Channel.BaseURL = cmp.Or(kept.Base, to.Channel.BaseURL)
	if !strings.HasSuffix(to.Channel.BaseURL, apiPath) {
		to.Channel.BaseURL += apiPath
	}
	return to
}

// Open reads the job's video at the link of its record.
func (v *Videos) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	return v.Linked.Open(ctx, based(to, ticket), ticket, output)
}

// Cancel stops a queued job. The vendor refuses it for a running job as for one that has ended, so Cancel then reads the job.
func (v *Videos) Cancel(ctx context.Context, to providers.Target, ticket providers.Ticket) error {
	_, err := v.Jobs.Do(ctx, based(to, ticket), upstream.JobRequest{Method: http.MethodPost, Path: jobPath(ticket) + "/cancel"})
	var fault *providers.Fault
	if upstream.Forgotten(err) {
		return nil
	}
	if !errors.As(err, &fault) || fault.Code != "UnsupportedOperation" {
		return err
	}
	j, err := v.job(ctx, to, ticket)
	if err != nil && !upstream.Forgotten(err) {
		return err
	}
	switch j.Output.Status {
	case "PENDING", "RUNNING", "SUSPENDED":
		return &providers.Fault{Kind: providers.Conflict, Message: "The upstream stops no job that runs.", Accepted: providers.NotAccepted}
	}
	return nil
}

func jobPath(ticket providers.Ticket) string { return "/tasks/" + url.PathEscape(ticket.Job) }

func (v *Videos) job(ctx context.Context, to providers.Target, ticket providers.Ticket) (job, error) {
	var j job
	err := v.Jobs.Read(ctx, based(to, ticket), upstream.JobRequest{Path: jobPath(ticket)}, &j)
	return j, err
}

// job is the vendor's answer about a job.
type job struct {
	Output struct {
		TaskID   upstream.Loose  `json:"task_id"`
		Status   upstream.Loose  `json:"task_status"`
		Submit   upstream.Loose  `json:"submit_time"`
		End      upstream.Loose  `json:"end_time"`
		VideoURL upstream.Loose  `json:"video_url"`
		Results  json.RawMessage `json:"results"`
		Code     upstream.Loose  `json:"code"`
		Message  upstream.Loose  `json:"message"`
	} `json:"output"`
	Usage json.RawMessage `json:"usage"`
}

// VideoLinks returns the link to the video, which requires no key. Older models have it one level deeper.
func (j job) VideoLinks() []string {
	var older struct {
		VideoURL upstream.Loose `json:"video_url"`
	}
	_ = json.Unmarshal(j.Output.Results, &older) // errors leave it empty
	return []string{string(cmp.Or(j.Output.VideoURL, older.VideoURL))}
}

// VideoStatus implements upstream.Record.
func (j job) VideoStatus(key providers.Secret) (providers.VideoStatus, error) {
	switch word := string(j.Output.Status); word {
	case "FAILED":
		code := string(j.Output.Code)
		as, retryable := failureCode(code)
		return upstream.FailedJob(word, as, code, string(j.Output.Message), retryable, key), nil
	case "CANCELED":
		return upstream.FailedJob(word, providers.FailedVendor, word, "The job was cancelled at the upstream.", false, key), nil
	case "UNKNOWN": // older than a day, or, just after its create, not seen yet
		return upstream.ForgottenJob(), nil
	}
	s, err := upstream.States{Queued: "PENDING", Done: "SUCCEEDED"}.Status(j.Output.Status, j.VideoLinks())
	if s.State == providers.JobDone {
		j.measure(&s)
	}
	return s, err
}

// measure reads the length and the size of the video, and when it is removed.
func (j job) measure(s *providers.VideoStatus) {
	var usage struct {
		Output   upstream.Loose `json:"output_video_duration"`
		Input    upstream.Loose `json:"input_video_duration"`
		Duration upstream.Loose `json:"duration"`
		Older    upstream.Loose `json:"video_duration"`
		Size     upstream.Loose `json:"size"`
		SR       upstream.Loose `json:"SR"` // 720 for 720p
	}
	_ = json.Unmarshal(j.Usage, &usage) // errors leave it empty
	if lines := usage.SR.Number(); lines != "" {
		s.Resolution = lines + "p"
	}
	s.Seconds = cmp.Or(usage.Output.Number(), usage.Duration.Number(), usage.Older.Number())
	if usage.Output.Number() != "" { // duration is the sum of both
		s.Source = usage.Input.Number()
	}
	s.Width, s.Height = upstream.Loose(strings.ReplaceAll(string(usage.Size), "*", "x")).Dimensions()
	now := time.Now()
	end, ended := moment(j.Output.End)
	if began, ok := moment(j.Output.Submit); ok && ended && end.After(began) {
		s.Took = end.Sub(began)
	}
	if !ended || end.After(now) || now.Sub(end) > jobLife { // of another zone
		end = now
	}
	s.Dies = end.Add(jobLife).UTC()
}

// moment reads a time of day in Beijing.
func moment(text upstream.Loose) (time.Time, bool) {
	const eastOfGreenwich = 8 * 60 * 60
	at, err := time.ParseInLocation("2006-01-02 15:04:05.999", string(text), time.FixedZone("Beijing", eastOfGreenwich))
	return at, err == nil
}
