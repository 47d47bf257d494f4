// Package replicate adapts Replicate's predictions, which run many models with inputs of their own.
//
// Of the product it imports providers and providers/upstream alone.
package replicate

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: replicate/replicate-javascript 1.4.0 (lib/predictions.js, index.d.ts), replicate.com/docs
// (topics/predictions/lifecycle, rate-limits, data-retention), vercel/ai packages/replicate.

// BaseURL is the vendor's own address.
const BaseURL = "https://api.replicate.com/v1"

// resultLife is how long the vendor keeps what a prediction made, after its end.
const resultLife = time.Hour

// mostPoll leaves most of a result's life for its copy.
const mostPoll = 10 * time.Minute

// Videos drives the vendor's predictions. It takes no key of ours, and its list tells two equal inputs not apart, so a lost
// prediction is not looked up.
type Videos struct{ jobs *upstream.Jobs }

// NewVideos makes the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.NewJobs(client, upstream.JobVendor{Name: "replicate"})}
}

// Submit starts a job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	path, body, err := createBody(ctx, to, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	var made prediction
	if err := v.jobs.Read(ctx, to, upstream.JobRequest{Method: http.MethodPost, Path: path, Body: body, Paid: true}, &made); err != nil {
		return providers.Ticket{}, err
	}
	if made.ID == "" {
		return providers.Ticket{}, upstream.BrokenAnswer("no id", nil)
	}
	return providers.Ticket{Job: string(made.ID)}, nil
}

// createBody writes a create and says where it goes: to a model by its name, to a version of one, or to a deployment
// ("deployments/OWNER/NAME"). Every failure is before anything was sent.
func createBody(ctx context.Context, to providers.Target, req providers.VideoRequest) (path string, body []byte, err error) {
	members, err := hostedOf(to.Model).Members(ctx, req, to.Channel.FieldsOf(to.Model))
	if err != nil {
		return "", nil, err
	}
	input, err := upstream.Encode(req, members)
	if err != nil {
		return "", nil, err
	}
	create := map[string]any{"input": json.RawMessage(input)}
	name, version, versioned := strings.Cut(to.Model, ":")
	if name, err = upstream.ModelPath(name); err != nil {
		return "", nil, err
	}
	deployment, deployed := strings.CutPrefix(name, "deployments/")
	switch {
	case versioned:
		path, create["version"] = "/predictions", version
	case !strings.Contains(name, "/"):
		path, create["version"] = "/predictions", name
	case deployed:
		path = "/deployments/" + deployment + "/predictions"
	default:
		path = "/models/" + name + "/predictions"
	}
	body, err = json.Marshal(create)
	if err != nil {
		return "", nil, providers.Unwritable(err)
	}
	return path, body, nil
}

// Poll reads the job.
func (v *Videos) Poll(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	p, err := v.prediction(ctx, to, ticket)
	if err != nil {
		return upstream.Unread(err)
	}
	return p.status(to.Key)
}

// Pace implements providers.Paced: a result is to be copied before it is gone. The vendor has no rule of how often it is asked.
func (v *Videos) Pace() providers.Pace { return providers.Pace{Most: mostPoll} }

// Open reads one of the job's files at its link. Some lie at the vendor's own address, which wants the key.
func (v *Videos) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	p, err := v.prediction(ctx, to, ticket)
	if err != nil {
		return providers.Video{}, err
	}
	links := p.links()
	if output < 0 || output >= len(links) {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The upstream does not have video %d, or no longer.", output+1)
	}
	return v.jobs.Open(ctx, to, links[output], true)
}

// Cancel stops the job. What ran until then may be billed.
func (v *Videos) Cancel(ctx context.Context, to providers.Target, ticket providers.Ticket) error {
	_, err := v.jobs.Do(ctx, to, upstream.JobRequest{Method: http.MethodPost, Path: "/predictions/" + url.PathEscape(ticket.Job) + "/cancel"})
	if upstream.Forgotten(err) {
		return nil
	}
	return err
}

func (v *Videos) prediction(ctx context.Context, to providers.Target, ticket providers.Ticket) (prediction, error) {
	var p prediction
	err := v.jobs.Read(ctx, to, upstream.JobRequest{Path: "/predictions/" + url.PathEscape(ticket.Job)}, &p)
	return p, err
}

// prediction is the vendor's job.
type prediction struct {
	ID      upstream.Loose  `json:"id"`
	Status  upstream.Loose  `json:"status"`
	Output  json.RawMessage `json:"output"`
	Error   json.RawMessage `json:"error"`
	Removed json.RawMessage `json:"data_removed"`
	Created upstream.Loose  `json:"created_at"`
	Ended   upstream.Loose  `json:"completed_at"`
}

// links are the addresses in an output, which is one, a list of them, or an object of either; of an object with a video that
// alone.
func (p prediction) links() []string {
	var bare upstream.Loose
	if json.Unmarshal(p.Output, &bare) == nil && bare != "" {
		return []string{string(bare)}
	}
	var found []string
	var walk func(value any)
	walk = func(value any) {
		switch value := value.(type) {
		case string:
			if strings.HasPrefix(value, "https://") || strings.HasPrefix(value, "http://") {
				found = append(found, value)
			}
		case []any:
			for _, one := range value {
				walk(one)
			}
		case map[string]any:
			if video, ok := value["video"]; ok {
				walk(video)
				return
			}
			members := make([]string, 0, len(value))
			for name := range value {
				members = append(members, name)
			}
			slices.Sort(members)
			for _, name := range members {
				walk(value[name])
			}
		}
	}
	var output any
	_ = json.Unmarshal(p.Output, &output) // what does not read has no links
	walk(output)
	return found
}

// status reads the vendor's words. An unknown one, and none at all, means still running.
func (p prediction) status(key providers.Secret) (providers.VideoStatus, error) {
	word := string(p.Status)
	s := providers.VideoStatus{State: providers.JobRunning, Progress: -1, Word: providers.Cut(word, providers.WordLimit)}
	failed := func(code, text string) (providers.VideoStatus, error) {
		return upstream.FailedJob(word, code, "", text, false, key), nil
	}
	switch p.Status {
	case "starting":
		s.State = providers.JobQueued
	case "succeeded":
		links := len(p.links())
		switch {
		case links == 0 && string(p.Removed) == "true":
			return failed(providers.FailedForgotten, "The upstream has removed what the job made.")
		case links == 0:
			return providers.VideoStatus{}, upstream.BrokenAnswer("succeeded without a link", nil)
		}
		ended := moment(p.Ended)
		s.State, s.Outputs, s.Dies, s.Took = providers.JobDone, links, ended.Add(resultLife), took(moment(p.Created), ended)
		if ended.IsZero() {
			s.Dies = time.Now().Add(resultLife)
		}
	case "failed":
		reason := p.reason()
		return failed(failureCode(reason), reason)
	case "canceled":
		return failed(providers.FailedVendor, "The prediction was canceled.")
	case "aborted":
		return failed(providers.FailedTimeout, "The prediction did not start before its deadline.")
	}
	return s, nil
}

// moment reads a time; the zero one for anything else.
func moment(text upstream.Loose) time.Time {
	at, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return time.Time{}
	}
	return at
}

// took is the time between two moments, 0 where one is missing.
func took(from, until time.Time) time.Duration {
	if from.IsZero() || until.Before(from) {
		return 0
	}
	return until.Sub(from)
}

// reason is what the vendor says of a failed job, as a text or as an object.
func (p prediction) reason() string {
	var text upstream.Loose
	var said struct {
		Detail upstream.Loose `json:"detail"`
	}
	_ = json.Unmarshal(p.Error, &text) // another shape says nothing
	_ = json.Unmarshal(p.Error, &said)
	return string(max(text, said.Detail)) // one of them is ""
}

// failureCode is the product's word for the vendor's, which are free text.
func failureCode(reason string) string {
	said := strings.ToLower(reason)
	for _, word := range [...]string{"nsfw", "sensitive", "e005", "safety", "moderation"} {
		if strings.Contains(said, word) {
			return providers.FailedContent
		}
	}
	return providers.FailedVendor
}

// Check implements providers.Checker, by the account and the models.
func (v *Videos) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	checked := providers.Checked{Asked: "the account", Told: true}
	if _, err := v.jobs.Free(ctx, to, "/account"); err != nil {
		return checked, err
	}
	for _, model := range models {
		name, _, _ := strings.Cut(model, ":")
		path, err := upstream.ModelPath(name)
		switch {
		case err != nil:
			return checked, err
		case !strings.Contains(path, "/"): // a version, whose model it does not name
			continue
		case !strings.HasPrefix(path, "deployments/"):
			path = "models/" + path
		}
		if _, err := v.jobs.Free(ctx, to, "/"+path); upstream.Forgotten(err) {
			checked.Lacks = append(checked.Lacks, model)
		} else if err != nil {
			return checked, err
		}
	}
	return checked, nil
}
