package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"modelrelay/providers"
)

// jobAnswer bounds the JSON of a job, in bytes. Vendors repeat the prompt in it, each character with up to six bytes.
const jobAnswer = 4 << 20

// Jobs sends the requests of one vendor's video jobs, with JSON both ways. It is safe for concurrent use.
type Jobs struct {
	client, submit *http.Client
	results        *Results
	vendor         JobVendor
}

// JobVendor is what is a vendor's own in the requests of its jobs.
type JobVendor struct {
	// Name is the vendor's in the catalog.
	Name string
	// Root begins each path ("/v2"), of a vendor whose address is written with it and without it. "" for none.
	Root string
	// Authorize puts the key on a request; nil makes it a bearer token. An error that is no *providers.Fault refuses the key.
	Authorize func(req *http.Request, key providers.Secret) error
	// Classify reads the vendor's own words in Fault.Upstream.Body, where they say more than the status does; the same for an
	// answer of status 200 that says no, which Refuse made. nil: the status says all.
	Classify func(fault *providers.Fault)
	// Failed is the product's word for the vendor's code of a create that was refused, as of a failed job: one of the Failed words of
	// providers, of which FailedVendor says nothing. nil: Classify may say it.
	Failed func(code string) string
	// Reason finds the vendor's reason in the body of a refusal, "" for none; nil looks where most vendors have it.
	Reason func(body []byte) string
}

// NewJobs makes the jobs of a vendor over the process's client.
func NewJobs(client *http.Client, vendor JobVendor) *Jobs {
	if vendor.Authorize == nil {
		vendor.Authorize = func(req *http.Request, key providers.Secret) error {
			req.Header.Set("Authorization", "Bearer "+key.Reveal())
			return nil
		}
	}
	if vendor.Reason == nil {
		vendor.Reason = Reason
	}
	return &Jobs{client: client, submit: Fresh(client), results: NewResults(client), vendor: vendor}
}

// JobRequest is one request of a job.
type JobRequest struct {
	// Method is GET where it is empty. Path follows the channel's address and the vendor's Root, query and all.
	Method, Path string
	// Body is JSON, nil for none, unless Header has another Content-Type.
	Body   []byte
	Header http.Header
	// Paid: it starts what is paid for, so it goes out once, over a connection of its own, and its refusal says why.
	Paid bool
	// Inline: a video may stand in the answer as Base64, so its long strings are cut. OpenInline reads the video.
	Inline bool
}

// JobAnswer is a 2xx answer.
type JobAnswer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends a request and reads its answer whole. Errors are *providers.Fault.
func (j *Jobs) Do(ctx context.Context, to providers.Target, r JobRequest) (JobAnswer, error) {
	req, err := j.Request(ctx, to, r)
	if err != nil {
		return JobAnswer{}, err
	}
	client := j.client
	if r.Paid {
		client = j.submit
	}
	resp, err := Send(client, req)
	if err != nil {
		return JobAnswer{}, j.explain(err, to.Key, r.Paid)
	}
	defer resp.Body.Close()
	var from io.Reader = resp.Body
	if r.Inline {
		from = &cutter{from: resp.Body}
	}
	body, err := ReadAnswer(ctx, from, jobAnswer)
	if err != nil {
		return JobAnswer{}, err
	}
	return JobAnswer{Status: resp.StatusCode, Header: resp.Header, Body: body}, nil
}

// Read is Do for an answer that is a JSON object, which it reads into a struct.
func (j *Jobs) Read(ctx context.Context, to providers.Target, r JobRequest, into any) error {
	answer, err := j.Do(ctx, to, r)
	if err != nil {
		return err
	}
	return Decode(answer.Body, into)
}

// Request makes the request without sending it.
func (j *Jobs) Request(ctx context.Context, to providers.Target, r JobRequest) (*http.Request, error) {
	var body io.Reader
	if r.Body != nil {
		body = struct{ io.Reader }{bytes.NewReader(r.Body)} // of no type that net/http would send again by itself
	}
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(to.Channel.BaseURL, j.vendor.Root)+j.vendor.Root+r.Path, body)
	if err != nil {
		return nil, &providers.Fault{Kind: providers.Internal, Message: "The channel's address is not usable.", Accepted: providers.NotAccepted, Err: err}
	}
	if r.Body != nil {
		req.ContentLength = int64(len(r.Body))
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", Agent(j.client))
	maps.Copy(req.Header, r.Header)
	if err := j.vendor.Authorize(req, to.Key); err != nil {
		var fault *providers.Fault
		if errors.As(err, &fault) {
			return nil, fault
		}
		fault = &providers.Fault{Err: err}
		fault.RefuseKey(providers.KeyRefused)
		return nil, fault
	}
	return req, nil
}

// Refuse makes the fault of a 2xx answer that says no: as an answer of the status would, with the vendor's words.
func (j *Jobs) Refuse(answer JobAnswer, status int, key providers.Secret, paid bool) error {
	fault := Refusal(status, answer.Header)
	fault.Upstream = &providers.Reply{
		Status: answer.Status, ContentType: answer.Header.Get("Content-Type"), Body: answer.Body[:min(len(answer.Body), MaxErrorBody)],
		RequestID: RequestID(answer.Header),
	}
	return j.explain(fault, key, paid)
}

// explain reads the vendor's words in a refusal, and gives a client those that it needs to mend its request. A refused key
// explains nothing: the vendor's words repeat a part of it.
func (j *Jobs) explain(err error, key providers.Secret, paid bool) error {
	var fault *providers.Fault
	if !errors.As(err, &fault) || fault.Upstream == nil {
		return err
	}
	fault.Upstream.Format = providers.Format(j.vendor.Name) // of no client
	if j.vendor.Classify != nil {
		j.vendor.Classify(fault)
	}
	if j.vendor.Failed != nil && fault.Code != "" {
		if word := j.vendor.Failed(fault.Code); word != providers.FailedVendor {
			fault.Failed = word
		}
	}
	said := j.vendor.Reason(fault.Upstream.Body)
	if fault.Failed == providers.FailedContent || refusesContent(fault.Upstream.Status, said) {
		// Vendors say so with the status of a bad request or of a bad key. It is about the prompt: no other key or channel gets it.
		fault.Kind, fault.Failed, fault.Accepted = providers.Invalid, providers.FailedContent, providers.NotAccepted
		fault.Blame, fault.Key, fault.KeyNamed = providers.BlameNone, providers.KeyBusy, false
		fault.Message = "The upstream refused the request for its content."
	}
	if !paid || fault.Retryable() {
		return fault
	}
	if said != "" {
		fault.Message = "The upstream refused the request: " + providers.Reason(said, key)
	}
	return fault
}

// refusesContent reports whether a refusal is about what a prompt or an input shows, by the vendor's words.
func refusesContent(status int, said string) bool {
	switch status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusUnavailableForLegalReasons:
	default:
		return false
	}
	return providers.Says(said, "moderation", "content policy", "content policies", "policy violation", "usage guidelines", "usage policy", "usage policies",
		"content guidelines", "safety check", "failed check", "safety system", "safety filter", "content filter", "sensitive content", "prohibited content", "nsfw")
}

// Open reads a result at a link. The key goes along where withKey says so and the link lies at the channel's own origin.
func (j *Jobs) Open(ctx context.Context, to providers.Target, link string, withKey bool) (providers.Video, error) {
	get, own, err := j.results.Link(ctx, to.Channel, link)
	if err != nil {
		return providers.Video{}, err
	}
	if own && withKey {
		if err := j.vendor.Authorize(get, to.Key); err != nil {
			return providers.Video{}, err
		}
	}
	return j.results.Open(to.Channel, get)
}

// Own tells whether a link lies at the channel's own origin.
func (j *Jobs) Own(ctx context.Context, to providers.Target, link string) bool {
	_, own, err := j.results.Link(ctx, to.Channel, link)
	return err == nil && own
}

// Content reads a result at a path of the vendor's own, which wants the key.
func (j *Jobs) Content(ctx context.Context, to providers.Target, path string) (providers.Video, error) {
	get, err := j.Request(ctx, to, JobRequest{Path: path})
	if err != nil {
		return providers.Video{}, err
	}
	return j.results.Open(to.Channel, get)
}

// Refine reads a vendor's own words in the error of a relayed call, where it is a refusal in the format; other errors pass.
func Refine(err error, format providers.Format, classify func(fault *providers.Fault)) error {
	var fault *providers.Fault
	if !errors.As(err, &fault) || fault.Upstream == nil {
		return err
	}
	fault.Upstream.Format = format
	classify(fault)
	return fault
}

// Reclass makes a fault one of the HTTP status that a vendor's own code means.
func Reclass(fault *providers.Fault, status int) {
	as := refusal(status)
	fault.Kind, fault.Message, fault.Accepted, fault.Blame, fault.Key = as.Kind, as.Message, as.Accepted, as.Blame, as.Key
}

// Undecided is the fault of a look for a lost job that could not answer: it says nothing about the submit.
func Undecided(err error) error {
	fault := *providers.AsFault(err)
	fault.Accepted = providers.AcceptedUnknown
	return &fault
}

// Forgotten tells whether an error is the vendor's word that it does not know the job: 404 or 410.
func Forgotten(err error) bool {
	var fault *providers.Fault
	return errors.As(err, &fault) && fault.Upstream != nil &&
		(fault.Upstream.Status == http.StatusNotFound || fault.Upstream.Status == http.StatusGone)
}

// ForgottenJob is the status of a job that its vendor does not know.
func ForgottenJob() providers.VideoStatus {
	return providers.VideoStatus{
		State: providers.JobForgotten, Progress: -1,
		Failure: &providers.VideoFailure{Code: providers.FailedForgotten, Message: "The upstream no longer knows the job."},
	}
}

// Unread is the status of a job whose record could not be read: that of a forgotten one where the vendor does not know it.
func Unread(err error) (providers.VideoStatus, error) {
	if Forgotten(err) {
		return ForgottenJob(), nil
	}
	return providers.VideoStatus{}, err
}

// FailedJob is the status of a job that ended without a video: word is the vendor's for that, code one of the Failed words of
// providers, vendorCode and reason the vendor's own, each of which may be "". retryable: the failure is the vendor's own, and
// costs nothing, so that another try may succeed.
func FailedJob(word, code, vendorCode, reason string, retryable bool, key providers.Secret) providers.VideoStatus {
	word = providers.Cut(word, providers.WordLimit)
	var said []string
	for _, text := range []string{vendorCode, reason} {
		if text != "" && !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	failure := &providers.VideoFailure{Code: code, Message: providers.Reason(strings.Join(said, ": "), key), Retryable: retryable}
	if failure.Message == "" {
		failure.Message = "The upstream's job ended as " + strconv.Quote(word) + "."
	}
	return providers.VideoStatus{State: providers.JobFailed, Progress: -1, Word: word, Failure: failure}
}

// Amount is the number at a member of an object, "" where there is none.
func Amount(object json.RawMessage, name string) Loose {
	var members map[string]Loose
	_ = json.Unmarshal(object, &members) // what is no object has no members
	return members[name]
}

// Priced adds what a vendor charges for a job that ended, in its own unit: the amount is a number, "" where the vendor does not say.
// A job that failed is billed where the amount is above 0.
func Priced(s providers.VideoStatus, amount Loose, unit string) providers.VideoStatus {
	number := amount.Number()
	if number == "" || s.State != providers.JobDone && s.State != providers.JobFailed {
		return s
	}
	s.Price = number + " " + unit
	if s.Failure != nil {
		n, _ := strconv.ParseFloat(number, 64)
		s.Failure.Billed = n > 0
	}
	return s
}

// ErrNotJSON is in the fault of an answer that came as a whole and is not the JSON object that is expected.
var ErrNotJSON = errors.New("another kind of document")

// Decode reads a JSON object into a struct. Anything else is a broken answer: what became of the request is unknown.
func Decode(body []byte, into any) error {
	// null decodes into anything, and says nothing.
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return BrokenAnswer("not a JSON object", ErrNotJSON)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return BrokenAnswer("not the JSON expected", errors.Join(ErrNotJSON, err))
	}
	return nil
}

// OneOutput refuses every output but the first, for vendors that make one video a job.
func OneOutput(output int) error {
	if output != 0 {
		return providers.Faultf(providers.NotFound, "The job has one video, not %d.", output+1)
	}
	return nil
}

// Reason reads the message of an error answer where most vendors have it; "" where there is none.
func Reason(body []byte) string {
	var answer struct {
		Error   json.RawMessage `json:"error"`
		Message Loose           `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	var said struct {
		Message Loose `json:"message"`
	}
	var bare, detail Loose
	// Where the words are not these, there are none to show.
	_ = json.Unmarshal(body, &answer)
	_ = json.Unmarshal(answer.Error, &said)
	_ = json.Unmarshal(answer.Error, &bare)
	_ = json.Unmarshal(answer.Detail, &detail)
	for _, text := range []Loose{said.Message, bare, answer.Message, detail} {
		if text != "" {
			return string(text)
		}
	}
	return ""
}
