// Package replicate adapts Replicate's predictions, which run many models with their own inputs.
//
// Of the product it imports only providers and providers/upstream.
package replicate

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: replicate/replicate-javascript 1.4.0 (lib/predictions.js, index.d.ts), replicate.com/docs
// (topics/predictions/lifecycle, rate-limits, data-retention), vercel/ai packages/replicate.

// BaseURL is the vendor's own address.
const BaseURL = "https://api.replicate.com/v1"

// resultLife is how long the vendor stores the files of a prediction after its end.
const resultLife = time.Hour

// mostPoll leaves most of a result's life for its copy. The vendor has no rule of how often it is asked.
const mostPoll = 10 * time.Minute

// Videos implements the vendor's predictions. The vendor accepts no idempotency key: Find knows a lost prediction by its seed.
type Videos struct{ upstream.Linked[prediction] }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.Linked[prediction]{
		Paced: providers.Pace{Most: mostPoll},
		Jobs:  upstream.NewJobs(client, upstream.JobVendor{Name: "replicate", Classify: classify}), Path: predictionPath,
		LinkKey: true, // some files are at the vendor's own address, which requires the key
	}}
}

// resets finds how long an account is throttled, which is only in the message: "Your rate limit resets in ~30s."
var resets = regexp.MustCompile(`resets in ~?([0-9]{1,5})s`)

// classify reads that time.
func classify(fault *providers.Fault) {
	if fault.Kind != providers.RateLimited || fault.RetryAfter > 0 {
		return
	}
	if found := resets.FindSubmatch(fault.Upstream.Body); found != nil {
		seconds, _ := strconv.Atoi(string(found[1])) // digits
		fault.RetryAfter = time.Duration(seconds) * time.Second
	}
}

// Submit starts a job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	req, _ = marked(to, req)
	path, body, err := createBody(ctx, to, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	return v.Jobs.Start(ctx, to, path, body, "id")
}

// createBody writes a create and returns its path: to a model by its name, to a version of one, or to a deployment
// ("deployments/OWNER/NAME"). It fails only before anything was sent.
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

// Cancel stops the job. The time until then may be billed.
func (v *Videos) Cancel(ctx context.Context, to providers.Target, ticket providers.Ticket) error {
	return v.Jobs.Stop(ctx, to, http.MethodPost, predictionPath(ticket)+"/cancel")
}

func predictionPath(ticket providers.Ticket) string {
	return "/predictions/" + url.PathEscape(ticket.Job)
}

// prediction is the vendor's job.
type prediction struct {
	Status  upstream.Loose  `json:"status"`
	Output  json.RawMessage `json:"output"`
	Error   json.RawMessage `json:"error"`
	Removed json.RawMessage `json:"data_removed"`
	Created upstream.Loose  `json:"created_at"`
	Ended   upstream.Loose  `json:"completed_at"`
	// Metrics has predict_time, the seconds that the vendor bills whatever came of them.
	Metrics json.RawMessage `json:"metrics"`
}

// VideoLinks returns the URLs in an output: one, a list of them, or an object of either; of an object with a video only that.
func (p prediction) VideoLinks() []string {
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
			for _, name := range slices.Sorted(maps.Keys(value)) {
				walk(value[name])
			}
		}
	}
	var output any
	_ = json.Unmarshal(p.Output, &output) // errors leave it empty
	walk(output)
	return found
}

// VideoStatus implements upstream.Record.
func (p prediction) VideoStatus(key providers.Secret) (providers.VideoStatus, error) {
	s, err := p.status(key)
	return upstream.Priced(s, upstream.Amount(p.Metrics, "predict_time"), "seconds of work"), err
}

func (p prediction) status(key providers.Secret) (providers.VideoStatus, error) {
	links := p.VideoLinks()
	failed := func(code, text string) (providers.VideoStatus, error) {
		return upstream.FailedJob(string(p.Status), code, "", text, false, key), nil
	}
	switch p.Status {
	case "failed":
		reason := p.reason()
		return failed(failureCode(reason), reason)
	case "canceled":
		return failed(providers.FailedVendor, "The prediction was canceled.")
	case "aborted":
		return failed(providers.FailedTimeout, "The prediction did not start before its deadline.")
	case "succeeded":
		if len(links) == 0 && string(p.Removed) == "true" {
			return failed(providers.FailedForgotten, "The upstream has removed what the job made.")
		}
	}
	s, err := upstream.States{Queued: "starting", Done: "succeeded", Life: resultLife}.Status(p.Status, links)
	if ended := moment(p.Ended); s.State == providers.JobDone && !ended.IsZero() {
		s.Dies, s.Took = ended.Add(resultLife), took(moment(p.Created), ended)
	}
	return s, err
}

// moment reads a time; the zero one for anything else.
func moment(text upstream.Loose) time.Time {
	at, _ := time.Parse(time.RFC3339, string(text)) // the zero time is that of an error
	return at
}

// took is the time between two moments, 0 where one is missing.
func took(from, until time.Time) time.Duration {
	if from.IsZero() || until.Before(from) {
		return 0
	}
	return until.Sub(from)
}

// reason returns the vendor's reason for a failed job, which is a text or an object.
func (p prediction) reason() string {
	var text upstream.Loose
	var said struct {
		Detail upstream.Loose `json:"detail"`
	}
	_ = json.Unmarshal(p.Error, &text) // errors leave it empty
	_ = json.Unmarshal(p.Error, &said)
	return string(max(text, said.Detail)) // one of them is ""
}

// failureCode maps the vendor's code of a failed job to a Failed constant.
func failureCode(reason string) string {
	if providers.Says(reason, "nsfw", "sensitive", "e005", "safety", "moderation") {
		return providers.FailedContent
	}
	return providers.FailedVendor
}

// Check implements providers.Checker, with the account and the models.
func (v *Videos) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	checked := providers.Checked{Asked: "the account", Listed: true}
	if _, err := v.Jobs.Free(ctx, to, "/account"); err != nil {
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
		if _, err := v.Jobs.Free(ctx, to, "/"+path); upstream.Forgotten(err) {
			checked.Lacks = append(checked.Lacks, model)
		} else if err != nil {
			return checked, err
		}
	}
	return checked, nil
}
