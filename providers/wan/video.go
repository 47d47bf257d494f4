// Package wan adapts the video jobs of Alibaba Cloud's Model Studio (DashScope): Wan and HappyHorse.
package wan

import (
	"cmp"
	"context"
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

// BaseURL is the vendor's own address in China. That of Singapore is https://dashscope-intl.aliyuncs.com/api/v1; workspaces have their own
// hosts.
const BaseURL = "https://dashscope.aliyuncs.com/api/v1"

const (
	// leastPoll is the shortest interval between two polls that the vendor permits.
	leastPoll = 15 * time.Second
	// jobLife is how long a job exists and the link to its result works, from the job's end.
	jobLife = 24 * time.Hour
)

// Videos implements the jobs of video-synthesis. The vendor's list of jobs contains nothing of a request, so a lost one cannot be found.
type Videos struct{ upstream.Linked }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.Linked{
		Jobs: upstream.NewJobs(client, upstream.JobVendor{
			Name: "wan", Root: "/api/v1", Code: []string{"code"}, Classify: classify, Failed: refusalCode,
		}),
		Create: create, ID: []string{"output.task_id"}, Read: read, Status: status,
		Links: upstream.Link("output.video_url", "output.results.video_url"), // older models; requires no key
		Paced: providers.Pace{Least: leastPoll}, UnknownJob: upstream.NoJob,
	}}
}

// baseField is the adapter's data of a ticket: only the host that made a job has it.
const baseField = "base"

// based returns the target with the base URL of a job: that of its ticket, otherwise the channel's.
func based(to providers.Target, ticket providers.Ticket) providers.Target {
	to.Channel.BaseURL = cmp.Or(string(upstream.DocOf(ticket.Data).Get(baseField)), to.Channel.BaseURL)
	return to
}

// jobPath returns the path of the record of a job.
func jobPath(ticket providers.Ticket) string { return "/tasks/" + url.PathEscape(ticket.Job) }

// Open reads the job's video at the link of its record.
func (v *Videos) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	return v.Linked.Open(ctx, based(to, ticket), ticket, output)
}

// Cancel stops a queued job. The vendor refuses the request for a running job, and for one that has ended.
func (v *Videos) Cancel(ctx context.Context, to providers.Target, ticket providers.Ticket) error {
	stop := upstream.JobRequest{Method: http.MethodPost, Path: jobPath(ticket) + "/cancel"}
	return v.StopUnlessRefused(ctx, based(to, ticket), ticket, stop, func(fault *providers.Fault) bool {
		return fault.Code == "UnsupportedOperation"
	})
}

func read(ctx context.Context, jobs *upstream.Jobs, to providers.Target, ticket providers.Ticket) (upstream.Doc, error) {
	return jobs.Read(ctx, based(to, ticket), upstream.JobRequest{Path: jobPath(ticket)})
}

func status(job upstream.Doc, links []string, key providers.Secret) (providers.VideoStatus, error) {
	state := job.Get("output.task_status")
	switch word := string(state); word {
	case "FAILED":
		code := string(job.Get("output.code"))
		as, retryable := failureCode(code)
		return upstream.FailedJob(word, as, code, string(job.Get("output.message")), retryable, key), nil
	case "CANCELED":
		return upstream.FailedJob(word, providers.FailedVendor, word, "The job was cancelled at the upstream.", false, key), nil
	case "UNKNOWN": // older than a day, or created a moment ago
		return upstream.ForgottenJob(), nil
	}
	s, err := upstream.States{Queued: "PENDING", Done: "SUCCEEDED"}.Status(state, links)
	if s.State == providers.JobDone {
		measure(job, &s)
	}
	return s, err
}

// measure reads the length and the size of the video, and when it is removed.
func measure(job upstream.Doc, s *providers.VideoStatus) {
	usage := job.At("usage")
	if lines := usage.Get("SR").Number(); lines != "" { // 720 for 720p
		s.Resolution = lines + "p"
	}
	made := usage.Get("output_video_duration").Number()
	s.Seconds = cmp.Or(made, usage.Get("duration").Number(), usage.Get("video_duration").Number())
	if made != "" { // duration is the sum of both
		s.Source = usage.Get("input_video_duration").Number()
	}
	s.Width, s.Height = upstream.Loose(strings.ReplaceAll(string(usage.Get("size")), "*", "x")).Dimensions()
	now := time.Now()
	end, ended := moment(job.Get("output.end_time"))
	if began, ok := moment(job.Get("output.submit_time")); ok && ended && end.After(began) {
		s.Took = end.Sub(began)
	}
	if !ended || end.After(now) || now.Sub(end) > jobLife { // the time is of another zone
		end = now
	}
	s.ExpiresAt = end.Add(jobLife).UTC()
}

// moment reads a time of day in Beijing.
func moment(text upstream.Loose) (time.Time, bool) {
	const eastOfGreenwich = 8 * 60 * 60
	at, err := time.ParseInLocation("2006-01-02 15:04:05.999", string(text), time.FixedZone("Beijing", eastOfGreenwich))
	return at, err == nil
}
