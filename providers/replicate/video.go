// Package replicate adapts Replicate's predictions, which run many models with their own inputs.
package replicate

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
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

// mostPoll leaves most of a result's lifetime for its copy. The vendor has no rule for the interval of polls.
const mostPoll = 10 * time.Minute

// Videos implements the vendor's predictions. The vendor accepts no idempotency key: Find recognizes a lost prediction by its seed.
type Videos struct{ upstream.Linked }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.Linked{
		Jobs:   upstream.NewJobs(client, upstream.JobVendor{Name: "replicate", Classify: classify}),
		Create: create, ID: []string{"id"}, Path: "/predictions/%s", Links: links, Status: status,
		LinkKey: true, // some files are at the vendor's own address, which requires the key
		Paced:   providers.Pace{Most: mostPoll},
	}}
}

// resets finds the time until the end of an account's throttling, which is only in the message: "Your rate limit resets in ~30s."
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

// create writes a create: to a model by its name, to a version of one, or to a deployment ("deployments/OWNER/NAME").
func create(ctx context.Context, to providers.Target, req providers.VideoRequest) (upstream.JobRequest, error) {
	req, _ = marked(to, req)
	d := hostedOf(to.Model).Draft(ctx, req, to.Channel.FieldsOf(to.Model))
	d.Under(d.Own)
	d.Own, d.Members = make(map[string]json.RawMessage), upstream.Members{"input": d.Members}
	name, version, versioned := strings.Cut(to.Model, ":")
	name, err := upstream.ModelPath(name)
	d.Refuse(err)
	path := "/models/" + name + "/predictions"
	deployment, deployed := strings.CutPrefix(name, "deployments/")
	switch {
	case versioned:
		path, d.Members["version"] = "/predictions", version
	case !strings.Contains(name, "/"):
		path, d.Members["version"] = "/predictions", name
	case deployed:
		path = "/deployments/" + deployment + "/predictions"
	}
	return d.Create(path, 0)
}

// Cancel stops the job. The time until then may be billed.
func (v *Videos) Cancel(ctx context.Context, to providers.Target, ticket providers.Ticket) error {
	_, err := v.Jobs.Do(ctx, to, upstream.JobRequest{Method: http.MethodPost, Path: v.JobPath(ticket) + "/cancel"})
	if upstream.Forgotten(err) {
		return nil
	}
	return err
}

// links returns the URLs in an output: one, a list of them, or an object of either; of an object with a video only that.
func links(job upstream.Doc) []string {
	if bare := job.Get("output"); bare != "" && !job.Has("output") {
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
	var whole struct {
		Output any `json:"output"`
	}
	_ = json.Unmarshal(job, &whole) // errors leave it empty
	walk(whole.Output)
	return found
}

// status adds predict_time, the seconds that the vendor bills for any outcome.
func status(job upstream.Doc, links []string, key providers.Secret) (providers.VideoStatus, error) {
	s, err := state(job, links, key)
	return upstream.Priced(s, job.Get("metrics.predict_time"), "seconds of work"), err
}

func state(job upstream.Doc, outputs []string, key providers.Secret) (providers.VideoStatus, error) {
	word := job.Get("status")
	failed := func(code, text string) (providers.VideoStatus, error) {
		return upstream.FailedJob(string(word), code, "", text, false, key), nil
	}
	switch word {
	case "failed":
		reason := string(job.Get("error", "error.detail"))
		return failed(failureCode(reason), reason)
	case "canceled":
		return failed(providers.FailedVendor, "The prediction was canceled.")
	case "aborted":
		return failed(providers.FailedTimeout, "The prediction did not start before its deadline.")
	case "succeeded":
		if len(outputs) == 0 && job.At("data_removed").True() {
			return failed(providers.FailedForgotten, "The upstream has removed what the job made.")
		}
	}
	s, err := upstream.States{Queued: "starting", Done: "succeeded", Life: resultLife}.Status(word, outputs)
	if ended := job.Get("completed_at"); s.State == providers.JobDone && !ended.Time().IsZero() {
		s.ExpiresAt, s.Took = ended.Time().Add(resultLife), upstream.Took(job.Get("created_at"), ended)
	}
	return s, err
}

func failureCode(reason string) string {
	if providers.Mentions(reason, "nsfw", "sensitive", "e005", "safety", "moderation") {
		return providers.FailedContent
	}
	return providers.FailedVendor
}

// Check implements providers.Checker, with the account and the models.
func (v *Videos) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	checked := providers.Checked{Subject: "the account", Listed: true}
	if _, err := v.Jobs.Free(ctx, to, "/account"); err != nil {
		return checked, err
	}
	for _, model := range models {
		name, _, _ := strings.Cut(model, ":")
		path, err := upstream.ModelPath(name)
		switch {
		case err != nil:
			return checked, err
		case !strings.Contains(path, "/"): // a version, without the name of its model
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
