// Package zhipu adapts Zhipu (Z.ai) CogVideoX, and the models that the platform sells on.
//
// Of the product it imports providers and providers/upstream alone.
package zhipu

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: docs.bigmodel.cn (video generation, async-result, api-code, rate-limit), docs.z.ai
// (generate-video, api-code).

// BaseURL is the vendor's own address; that outside China is https://api.z.ai/api/paas/v4, with keys of its own.
const BaseURL = "https://open.bigmodel.cn/api/paas/v4"

const (
	// linkLife is how long a link to a result works: what is usual on the platform, for the vendor does not say.
	linkLife = 24 * time.Hour
	// leastPoll is how often the vendor wants to be asked at most.
	leastPoll = 5 * time.Second
)

// Videos drives the jobs of POST /videos/generations. The vendor refuses an attempt's key that it has seen, so that nothing is
// paid twice, yet looks no job up by it; and it cancels none.
type Videos struct{ jobs *upstream.Jobs }

// NewVideos makes the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.NewJobs(client, upstream.JobVendor{Name: "zhipu", Classify: classify})}
}

// Submit starts a job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	body, err := createBody(ctx, to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	answer, err := v.jobs.Do(ctx, to, upstream.JobRequest{Method: http.MethodPost, Path: "/videos/generations", Body: body, Paid: true})
	if err != nil {
		return providers.Ticket{}, err
	}
	var made job
	if err := upstream.Decode(answer.Body, &made); err != nil {
		return providers.Ticket{}, err
	}
	switch code, _ := made.reason(); {
	case made.ID == "" && code != "":
		return providers.Ticket{}, v.jobs.Refuse(answer, http.StatusInternalServerError, to.Key, true)
	case made.ID == "":
		return providers.Ticket{}, upstream.BrokenAnswer("no id", nil)
	}
	return providers.Ticket{Job: string(made.ID)}, nil
}

// Poll reads the job.
func (v *Videos) Poll(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	j, err := v.job(ctx, to, ticket)
	if err != nil {
		return upstream.Unread(err)
	}
	return j.status(to.Key)
}

// Pace implements providers.Paced.
func (v *Videos) Pace() providers.Pace { return providers.Pace{Least: leastPoll} }

// Open reads the job's one video at its link, which takes no key.
func (v *Videos) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	return v.open(ctx, to, ticket, output, result.video)
}

// OpenVariant reads the cover of the video, the one picture that the vendor makes.
func (v *Videos) OpenVariant(ctx context.Context, to providers.Target, ticket providers.Ticket, output int, variant string) (providers.Video, error) {
	if variant != providers.Thumbnail {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The upstream makes no %s.", variant)
	}
	return v.open(ctx, to, ticket, output, result.cover)
}

func (v *Videos) open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int, link func(result) string) (providers.Video, error) {
	if err := upstream.OneOutput(output); err != nil {
		return providers.Video{}, err
	}
	j, err := v.job(ctx, to, ticket)
	if err != nil {
		return providers.Video{}, err
	}
	at := link(j.result())
	if at == "" {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The upstream does not have it, or no longer.")
	}
	return v.jobs.Open(ctx, to, at, false)
}

func (v *Videos) job(ctx context.Context, to providers.Target, ticket providers.Ticket) (job, error) {
	var j job
	err := v.jobs.Read(ctx, to, upstream.JobRequest{Path: "/async-result/" + url.PathEscape(ticket.Job)}, &j)
	return j, err
}

// job is the vendor's.
type job struct {
	ID     upstream.Loose  `json:"id"`
	Status upstream.Loose  `json:"task_status"`
	Result json.RawMessage `json:"video_result"`
	Error  json.RawMessage `json:"error"`
}

// result is where the video and its cover lie.
type result struct {
	URL   upstream.Loose `json:"url"`
	Cover upstream.Loose `json:"cover_image_url"`
}

func (r result) video() string { return string(r.URL) }
func (r result) cover() string { return string(r.Cover) }

// result is the first that has a link.
func (j job) result() result {
	var results []result
	_ = json.Unmarshal(j.Result, &results) // what is no such list has no link
	for _, one := range results {
		if one.URL != "" {
			return one
		}
	}
	return result{}
}

// reason reads the error of a failed job, or of a create that says no with a 200.
func (j job) reason() (code, message string) {
	var said struct {
		Code    upstream.Loose `json:"code"`
		Message upstream.Loose `json:"message"`
	}
	_ = json.Unmarshal(j.Error, &said) // another shape says nothing
	return string(said.Code), string(said.Message)
}

// status reads the vendor's words. An unknown one, and none at all, means still running.
func (j job) status(key providers.Secret) (providers.VideoStatus, error) {
	s := providers.VideoStatus{
		State: providers.JobRunning, Progress: -1, Word: providers.Cut(string(j.Status), providers.WordLimit),
	}
	switch j.Status {
	case "SUCCESS":
		if j.result().URL == "" {
			return providers.VideoStatus{}, upstream.BrokenAnswer("success without a link", nil)
		}
		s.State, s.Outputs, s.Dies = providers.JobDone, 1, time.Now().Add(linkLife)
	case "FAIL":
		code, message := j.reason()
		return upstream.FailedJob(string(j.Status), failureCode(code), code, message, false, key), nil
	}
	return s, nil
}

// failureCode is the product's word for the vendor's code of a failed job.
func failureCode(code string) string {
	switch {
	case code == "1301":
		return providers.FailedContent
	case strings.HasPrefix(code, "121"), code == "1261":
		return providers.FailedInput
	default:
		return providers.FailedVendor
	}
}

// classify reads the vendor's code, which says more than the status: an account in debt is a 429.
func classify(fault *providers.Fault) {
	var answer job
	_ = json.Unmarshal(fault.Upstream.Body, &answer) // another shape says nothing more than the status
	code, _ := answer.reason()
	fault.Code = providers.Cut(code, providers.WordLimit)
	switch code {
	case "1000", "1001", "1002", "1003", "1004", "1005", "1110", "1111", "1112", "1121":
		upstream.Reclass(fault, http.StatusUnauthorized)
	case "1113", "1304", "1308", "1310":
		upstream.Reclass(fault, http.StatusPaymentRequired)
	case "1220":
		upstream.Reclass(fault, http.StatusForbidden)
	case "1302", "1303", "1305", "1312":
		upstream.Reclass(fault, http.StatusTooManyRequests)
	case "1210", "1213", "1214", "1215", "1261", "1301":
		upstream.Reclass(fault, http.StatusBadRequest)
	case "1211", "1221", "1222":
		fault.Kind, fault.Message, fault.Accepted = providers.ModelNotFound, "The upstream does not have the model.", providers.NotAccepted
	case "1120", "1200", "1230", "1234":
		upstream.Reclass(fault, http.StatusInternalServerError)
	case "1231": // an earlier try of the attempt was taken, and nothing tells its id
		upstream.Reclass(fault, http.StatusConflict)
		fault.Accepted = providers.AcceptedUnknown
	}
}

// Check implements providers.Checker, by a look-up of a job that nobody has made.
func (v *Videos) Check(ctx context.Context, to providers.Target, _ []string) (providers.Checked, error) {
	_, err := v.job(ctx, to, providers.Ticket{Job: "1"})
	return upstream.LookedUp(err, nil)
}
