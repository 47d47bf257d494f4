package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"modelrelay/providers"
)

// Wire facts of this file: the videos service of github.com/openai/openai-go v3 (video.go), and for servers that stray
// from it (statuses such as "done" and "succeeded", the link in the object, no status at first) their public issues.

const (
	// jobLimit bounds the JSON of a job, in bytes.
	jobLimit = 1 << 20
	// reasonLimit bounds an upstream's reason for a refusal, in bytes.
	reasonLimit = 400
	// codeForgotten is the failure of a job that the upstream does not know.
	codeForgotten = "job_not_found"
)

// Videos drives the jobs of POST /videos. Its upstreams neither look jobs up by a key of ours nor cancel them, so it is
// neither a Finder nor a Canceler.
type Videos struct {
	client *http.Client
	submit *http.Client
}

// NewVideos makes the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{client: client, submit: providers.Fresh(client)}
}

// job is the upstream's video object, with the places where compatible servers put the link to the result.
type job struct {
	ID       string          `json:"id"`
	TaskID   string          `json:"task_id"`
	Status   string          `json:"status"`
	Progress *float64        `json:"progress"`
	Seconds  json.RawMessage `json:"seconds"`
	Size     string          `json:"size"`
	Error    json.RawMessage `json:"error"`
	URL      string          `json:"url"`
	VideoURL string          `json:"video_url"`
	Video    struct {
		URL string `json:"url"`
	} `json:"video"`
}

// link is where the result lies outside /content; "" where the object does not say.
func (j job) link() string {
	for _, link := range []string{j.URL, j.VideoURL, j.Video.URL} {
		if link != "" {
			return link
		}
	}
	return ""
}

// Submit posts the job as the vendor's SDK does: multipart, or JSON where the input image is a URL.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	body, err := createBody(ctx, to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	post, err := v.request(ctx, http.MethodPost, to, "/videos", body.reader())
	if err != nil {
		return providers.Ticket{}, err
	}
	post.ContentLength = int64(len(body.bytes))
	post.Header.Set("Content-Type", body.contentType)
	if req.IdempotencyKey != "" {
		post.Header.Set("Idempotency-Key", req.IdempotencyKey) // ignored by the vendor, honoured by gateways in front of it
	}
	resp, err := providers.Send(v.submit, post)
	if err != nil {
		return providers.Ticket{}, explain(err)
	}
	var made job
	if err := read(resp, &made); err != nil {
		return providers.Ticket{}, err // taken, in all likelihood
	}
	if made.ID == "" {
		made.ID = made.TaskID
	}
	if made.ID == "" {
		return providers.Ticket{}, broken("no job id", nil)
	}
	return providers.Ticket{Job: made.ID}, nil
}

// Poll reads the job.
func (v *Videos) Poll(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	j, err := v.job(ctx, to, ticket)
	var fault *providers.Fault
	if errors.As(err, &fault) && fault.Upstream != nil && (fault.Upstream.Status == http.StatusNotFound || fault.Upstream.Status == http.StatusGone) {
		return providers.VideoStatus{
			State: providers.JobForgotten, Progress: -1,
			Failure: &providers.VideoFailure{Code: codeForgotten, Message: "The upstream no longer knows the job."},
		}, nil
	}
	if err != nil {
		return providers.VideoStatus{}, err
	}
	return j.status(), nil
}

// status reads the upstream's words. An unknown one, and none at all, means still running.
func (j job) status() providers.VideoStatus {
	s := providers.VideoStatus{State: providers.JobRunning, Progress: -1, Word: j.Status, Seconds: number(j.Seconds)}
	if j.Progress != nil {
		s.Progress = int(math.Round(min(100, max(0, *j.Progress))))
	}
	s.Width, s.Height = dimensions(j.Size)
	switch strings.ToLower(j.Status) {
	case "queued", "pending", "submitted":
		s.State = providers.JobQueued
	case "completed", "done", "succeeded", "success":
		s.State, s.Outputs = providers.JobDone, 1
	case "failed", "error", "cancelled", "canceled", "expired", "rejected":
		s.State = providers.JobFailed
		s.Failure = j.failure()
	}
	return s
}

// failure is why the job failed: the error object, or bare text, or the status itself.
func (j job) failure() *providers.VideoFailure {
	f := &providers.VideoFailure{}
	var text string
	if json.Unmarshal(j.Error, f) != nil && json.Unmarshal(j.Error, &text) == nil {
		f.Message = text
	}
	if f.Code == "" {
		f.Code = "upstream_" + strings.ToLower(j.Status)
	}
	if f.Message == "" {
		f.Message = "The upstream's job ended as " + strconv.Quote(j.Status) + "."
	}
	f.Message = cut(f.Message)
	return f
}

// Open reads the job's one output: /content, else the link in the object.
func (v *Videos) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	if output != 0 {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The job has one video, not %d.", output+1)
	}
	get, err := v.request(ctx, http.MethodGet, to, "/videos/"+url.PathEscape(ticket.Job)+"/content", nil)
	if err != nil {
		return providers.Video{}, err
	}
	video, err := v.open(get)
	if err == nil || ctx.Err() != nil {
		return video, err
	}
	j, jobErr := v.job(ctx, to, ticket)
	if jobErr != nil || j.link() == "" {
		return providers.Video{}, err
	}
	if get, err = v.linked(ctx, to, j.link()); err != nil {
		return providers.Video{}, err
	}
	return v.open(get)
}

func (v *Videos) open(get *http.Request) (providers.Video, error) {
	resp, err := providers.Send(v.client, get)
	if err != nil {
		return providers.Video{}, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "application/json" || strings.HasPrefix(kind, "text/") {
		_ = resp.Body.Close()
		return providers.Video{}, broken("content of type "+strconv.Quote(kind), nil)
	}
	if kind == "" || kind == "application/octet-stream" {
		kind = "video/mp4"
	}
	return providers.Video{Body: resp.Body, Length: resp.ContentLength, ContentType: kind}, nil
}

// linked asks for a result link. The key goes only to the channel's own host.
func (v *Videos) linked(ctx context.Context, to providers.Target, link string) (*http.Request, error) {
	base, err := url.Parse(to.Channel.BaseURL)
	if err != nil {
		return nil, broken("base address", err)
	}
	at, err := base.Parse(link)
	if err != nil || (at.Scheme != "https" && at.Scheme != "http") {
		return nil, broken("result link", err)
	}
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, broken("result link", err)
	}
	get.Header.Set("User-Agent", providers.Agent)
	if at.Host == base.Host && at.Scheme == base.Scheme {
		get.Header.Set("Authorization", "Bearer "+to.Key.Reveal())
	}
	return get, nil
}

func (v *Videos) job(ctx context.Context, to providers.Target, ticket providers.Ticket) (job, error) {
	get, err := v.request(ctx, http.MethodGet, to, "/videos/"+url.PathEscape(ticket.Job), nil)
	if err != nil {
		return job{}, err
	}
	resp, err := providers.Send(v.client, get)
	if err != nil {
		return job{}, err
	}
	var j job
	return j, read(resp, &j)
}

// request makes an upstream request with the channel's key.
func (v *Videos) request(ctx context.Context, method string, to providers.Target, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, to.Channel.BaseURL+path, body)
	if err != nil {
		return nil, &providers.Fault{Kind: providers.Internal, Message: "The channel's address is not usable.", Taken: providers.TakenNo, Err: err}
	}
	req.Header.Set("Authorization", "Bearer "+to.Key.Reveal())
	req.Header.Set("User-Agent", providers.Agent)
	return req, nil
}

// read decodes a JSON answer and closes it.
func read(resp *http.Response, into any) error {
	defer resp.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(io.LimitReader(resp.Body, jobLimit))
	if err != nil {
		return broken("cut off", err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return broken("not the JSON expected", err)
	}
	return nil
}

// broken is the fault of a 2xx answer that makes no sense. What became of the request is unknown.
func broken(what string, err error) *providers.Fault {
	return &providers.Fault{
		Kind: providers.Upstream, Message: "The upstream's answer is broken.", Blame: providers.BlameChannel,
		Err: errors.Join(fmt.Errorf("broken answer: %s", what), err),
	}
}

// explain gives a refused create the vendor's own code and reason, which the client needs to mend its request. A
// refused key explains nothing: the vendor's words repeat a part of it.
func explain(err error) error {
	var fault *providers.Fault
	if !errors.As(err, &fault) || fault.Upstream == nil || fault.Elsewhere() {
		return err
	}
	fault.Upstream.Format = providers.OpenAI
	var reply struct {
		Error struct {
			Message string `json:"message"`
			Code    any    `json:"code"`
			Type    string `json:"type"`
			Param   string `json:"param"`
		} `json:"error"`
	}
	if json.Unmarshal(fault.Upstream.Body, &reply) != nil {
		return err
	}
	if reply.Error.Message != "" {
		fault.Message = "The upstream refused the request: " + cut(reply.Error.Message)
	}
	fault.Param = reply.Error.Param
	if fault.Code, _ = reply.Error.Code.(string); fault.Code == "" {
		fault.Code = reply.Error.Type
	}
	return err
}

// number reads a JSON number or a string of one as decimal text; "" for anything else.
func number(raw json.RawMessage) string {
	text := string(bytes.Trim(raw, `"`))
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		return ""
	}
	return text
}

// dimensions reads "1280x720"; zeros for anything else.
func dimensions(size string) (width, height int) {
	w, h, ok := strings.Cut(size, "x")
	width, errW := strconv.Atoi(w)
	height, errH := strconv.Atoi(h)
	if !ok || errW != nil || errH != nil || width <= 0 || height <= 0 {
		return 0, 0
	}
	return width, height
}

func cut(s string) string {
	if len(s) <= reasonLimit {
		return s
	}
	return strings.ToValidUTF8(s[:reasonLimit], "") + "…"
}
