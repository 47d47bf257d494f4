// Package veo adapts Google's Veo: on Google Cloud (Vertex AI) with the key of a service account, and with an API key in the form
// of the Gemini API, which Google has shut down for Veo and which resellers offer.
package veo

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: googleapis/js-genai (src/converters/_models_converters.ts and _operations_converters.ts,
// src/operations.ts, src/node/_node_downloader.ts), vercel/ai packages/google-vertex and packages/google.

// BaseURL is the vendor's own address, to which the project of the service account is added.
const BaseURL = "https://us-central1-aiplatform.googleapis.com/v1"

const (
	// location is that of BaseURL.
	location = "us-central1"
	// storage is the origin of objects of gs:// links.
	storage = "https://storage.googleapis.com"
	// leastPoll is the interval between polls in the vendor's own samples.
	leastPoll = 10 * time.Second
	// fileLife is how long the Gemini API keeps a file.
	fileLife = 48 * time.Hour
)

// projectPath is the end of a channel's address on Google Cloud.
var projectPath = regexp.MustCompile(`/projects/[^/]+/locations/[^/]+$`)

// CheckBaseURL refuses an address that is neither a project's location on Google Cloud nor a Gemini API's.
func CheckBaseURL(base *url.URL) error {
	if projectPath.MatchString(base.Path) || strings.HasSuffix(base.Path, "/v1beta") {
		return nil
	}
	return errors.New("must be https://HOST/v1/projects/PROJECT/locations/LOCATION, or an address that ends in /v1beta")
}

// Videos implements the jobs of predictLongRunning. The vendor has no list of them and documents no way to cancel them.
type Videos struct {
	jobs   *upstream.Jobs
	tokens *tokens
	// storage is the origin of objects, "" for the channel's own.
	storage string
}

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	v := &Videos{tokens: newTokens(client), storage: storage}
	v.jobs = upstream.NewJobs(client, upstream.JobVendor{
		Name: "veo", Classify: classify, Authorize: v.authorize,
	})
	return v
}

// Apart returns the same adapter with separate access tokens, for a typed key, which must not be stored. own are the keys of the channel.
// The error is a *providers.Fault: the typed key has its own token address, or is the machine's account.
func (v *Videos) Apart(typed providers.Secret, own []providers.Secret) (providers.VideoAdapter, error) {
	if leadsElsewhere(typed, own) {
		return nil, providers.InvalidField("key", "Invalid request: 'key' is an account that names an address of its own, which the file does not "+
			"have, or is the account of the machine. Such a key is tested once the file has it: gateway channels test.")
	}
	apart := NewVideos(v.tokens.client)
	apart.storage = v.storage
	return apart, nil
}

func (v *Videos) authorize(req *http.Request, key providers.Secret) error {
	if !isAccount(key) {
		req.Header.Set("X-Goog-Api-Key", key.Reveal())
		return nil
	}
	token, _, err := v.tokens.of(req.Context(), key)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// classify interprets the vendor's error. A 401 is an expired access token: a refused key fails when the token is created.
func classify(fault *providers.Fault) {
	upstream.ClassifyRPC(fault)
	if fault.Upstream.Status == http.StatusUnauthorized && fault.Blame == providers.BlameKey {
		fault.Key = providers.KeyBusy
	}
}

// do sends a request. It does not use a refused token again.
func (v *Videos) do(ctx context.Context, to providers.Target, r upstream.JobRequest) (upstream.Doc, error) {
	answer, err := v.jobs.Read(ctx, to, r)
	return answer, v.settle(err, to.Key)
}

func (v *Videos) settle(err error, key providers.Secret) error {
	var fault *providers.Fault
	if !errors.As(err, &fault) || fault.Upstream == nil {
		return err
	}
	refused := fault.Upstream.Status == http.StatusUnauthorized
	switch {
	case !isAccount(key):
		if refused {
			fault.Key = providers.KeyRefused
		}
		return fault
	case refused:
		v.tokens.forget(key)
	}
	own := accountOf(key)
	fault.Message = providers.Reason(fault.Message, own.ID, own.Private)
	return fault
}

// modelField is the adapter's data of a ticket: the path of the model that makes the job.
const modelField = "model"

// modelPath returns the path of a model below the target's base URL, which it may complete.
func (v *Videos) modelPath(ctx context.Context, to providers.Target) (string, error) {
	model := "/models/" + url.PathEscape(to.Model)
	if !isAccount(to.Key) {
		return model, nil
	}
	model = "/publishers/google" + model
	if projectPath.MatchString(to.Channel.BaseURL) {
		return model, nil
	}
	_, project, err := v.tokens.of(ctx, to.Key)
	if err != nil {
		return "", err
	}
	if project == "" {
		return "", &providers.Fault{
			Kind: providers.Upstream, Message: "The channel's key belongs to no project, and its address names none.",
			Accepted: providers.NotAccepted, Blame: providers.BlameChannel,
		}
	}
	return "/projects/" + url.PathEscape(project) + "/locations/" + location + model, nil
}

// Submit starts a job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	d := draft(ctx, to.Model, isAccount(to.Key), req)
	if err := d.Err(); err != nil {
		return providers.Ticket{}, err
	}
	model, err := v.modelPath(ctx, to)
	d.Refuse(err)
	create, err := d.Create(model+":predictLongRunning", 0)
	if err != nil {
		return providers.Ticket{}, err
	}
	made, err := v.do(ctx, to, create)
	if err != nil {
		return providers.Ticket{}, err
	}
	return upstream.NewTicket(made.Get("name"), map[string]string{modelField: model})
}

// poll returns the request for an operation. Google Cloud requires a POST at the model.
func poll(to providers.Target, ticket providers.Ticket) (upstream.JobRequest, error) {
	if !isAccount(to.Key) {
		at := url.URL{Path: "/" + ticket.Job}
		return upstream.JobRequest{Path: at.EscapedPath(), Inline: true}, nil
	}
	model := string(upstream.DocOf(ticket.Data).Get(modelField))
	body, err := json.Marshal(map[string]string{"operationName": ticket.Job})
	if err != nil {
		return upstream.JobRequest{}, providers.Unwritable(err)
	}
	return upstream.JobRequest{Method: http.MethodPost, Path: model + ":fetchPredictOperation", Body: body, Inline: true}, nil
}

func (v *Videos) operation(ctx context.Context, to providers.Target, ticket providers.Ticket) (upstream.Doc, error) {
	ask, err := poll(to, ticket)
	if err != nil {
		return nil, err
	}
	return v.do(ctx, to, ask)
}

// Poll reads the operation.
func (v *Videos) Poll(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	o, err := v.operation(ctx, to, ticket)
	if err != nil {
		return upstream.Unread(err)
	}
	return statusOf(o, to.Key)
}

// Pace implements providers.Paced.
func (v *Videos) Pace() providers.Pace { return providers.Pace{Least: leastPoll} }

// Open reads a video from the vendor's store, from a link that requires the key at the vendor's own origin, or from the operation.
func (v *Videos) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	o, err := v.operation(ctx, to, ticket)
	if err != nil {
		return providers.Video{}, err
	}
	videos := videosOf(o)
	if output < 0 || output >= len(videos) {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The job has %d videos, not %d.", len(videos), output+1)
	}
	video, err := v.open(ctx, to, ticket, videos, output)
	return video, v.settle(err, to.Key)
}

func (v *Videos) open(
	ctx context.Context, to providers.Target, ticket providers.Ticket, videos []upstream.Doc, output int,
) (providers.Video, error) {
	stored, link := string(videos[output].Get(storedField)), string(videos[output].Get(linkField))
	switch {
	case stored != "":
		bucket, object, _ := strings.Cut(strings.TrimPrefix(stored, "gs://"), "/")
		if v.storage != "" {
			to.Channel.BaseURL = v.storage
		}
		return v.jobs.Open(ctx, to, "/storage/v1/b/"+url.PathEscape(bucket)+"/o/"+url.PathEscape(object)+"?alt=media", true)
	case link != "":
		return v.jobs.Open(ctx, to, upstream.Download(link), true)
	}
	before, member := 0, bytesField
	if videos[output].Get(bytesField) == "" {
		member = encodedField
	}
	for _, one := range videos[:output] {
		if one.Get(bytesField, encodedField) != "" {
			before++
		}
	}
	ask, err := poll(to, ticket)
	if err != nil {
		return providers.Video{}, err
	}
	return v.jobs.OpenInline(ctx, to, ask, member, before)
}

// Check implements providers.Checker, with the list of models, or at Google Cloud with a look-up of an operation that does not exist.
func (v *Videos) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	if !isAccount(to.Key) {
		return v.jobs.CheckModels(ctx, to, "/models?pageSize=1000", models)
	}
	to.Model = "veo-3.1-generate-001"
	if len(models) > 0 {
		to.Model = models[0]
	}
	model, err := v.modelPath(ctx, to)
	if err != nil {
		return providers.Checked{}, err
	}
	base, _, _ := strings.Cut(model, "/publishers/")
	if at := projectPath.FindString(to.Channel.BaseURL); at != "" {
		base = at
	}
	name := strings.TrimPrefix(base, "/") + model[strings.Index(model, "/publishers/"):] + "/operations/" + upstream.NoJob
	ticket, err := upstream.NewTicket(upstream.Loose(name), map[string]string{modelField: model})
	if err != nil {
		return providers.Checked{}, err
	}
	_, err = v.operation(ctx, to, ticket)
	return upstream.LookedUp(err, nil)
}
