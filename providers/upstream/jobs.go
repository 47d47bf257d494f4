package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// jobAnswer bounds the JSON of a job, in bytes. Vendors repeat the prompt in it, with up to six bytes for each character.
const jobAnswer = 4 << 20

// Jobs sends the JSON requests of one vendor's video jobs. It is safe for concurrent use.
type Jobs struct {
	client, submit *http.Client
	results        *Results
	vendor         JobVendor
}

// JobVendor holds the differences between vendors in these requests.
type JobVendor struct {
	// Name is the vendor's name in the catalog.
	Name string
	// Root begins each path ("/v2") of a vendor whose base URL may have it or not. "" for none.
	Root string
	// Authorize adds the key to a request; nil adds a bearer token. An error that is not a *providers.Fault means that the key is unusable.
	Authorize func(req *http.Request, key providers.Secret) error
	// Code has the paths of the vendor's code in an error answer. The first that has one is in Fault.Code when Classify is called.
	Code []string
	// Classify interprets the vendor's error codes, also for one that Refused knows. nil: the status is enough.
	Classify func(fault *providers.Fault)
	// Refused returns the HTTP status that a refusal in a 2xx answer means, 0 for another answer; nil: the status is enough.
	Refused func(answer Doc) int
	// Failed maps the vendor's code of a refused create to one of the Failed constants. FailedVendor means unknown. nil: Classify may set it.
	Failed func(code string) string
	// Reason returns the vendor's reason in the body of a refusal, "" for none; nil reads the usual members.
	Reason func(body []byte) string
}

// NewJobs returns the Jobs of a vendor over the process's client.
func NewJobs(client *http.Client, vendor JobVendor) *Jobs {
	if vendor.Authorize == nil {
		vendor.Authorize = KeyIn("Authorization", "Bearer ")
	}
	if vendor.Reason == nil {
		vendor.Reason = Reason
	}
	return &Jobs{client: client, submit: Fresh(client), results: NewResults(client), vendor: vendor}
}

// KeyIn returns a JobVendor.Authorize that sets a header to the key after a prefix.
func KeyIn(header, prefix string) func(req *http.Request, key providers.Secret) error {
	return func(req *http.Request, key providers.Secret) error {
		req.Header.Set(header, prefix+key.Reveal())
		return nil
	}
}

// JobRequest is one request of a job.
type JobRequest struct {
	// Method is GET if empty. Path follows the channel's base URL and the vendor's Root, and includes the query.
	Method, Path string
	// Body is JSON, nil for none, unless Header has another Content-Type.
	Body   []byte
	Header http.Header
	// Paid: the request starts paid work, or prepares it. It is sent once, over its own connection, and a refusal has the vendor's reason.
	Paid bool
	// Inline: the answer may contain a video in Base64, so its long strings are cut. OpenInline reads the video.
	Inline bool
	// Own is the adapter's data for the ticket of a create, nil for none.
	Own any
}

// JobAnswer is a 2xx answer.
type JobAnswer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends a request and reads the whole answer. Errors are *providers.Fault.
func (j *Jobs) Do(ctx context.Context, to providers.Target, r JobRequest) (JobAnswer, error) {
	resp, err := j.send(ctx, to, r)
	if err != nil {
		return JobAnswer{}, err
	}
	defer resp.Body.Close()
	var from io.Reader = resp.Body
	if r.Inline {
		from = &cutter{from: resp.Body}
	}
	body, err := io.ReadAll(io.LimitReader(from, jobAnswer))
	if err != nil {
		return JobAnswer{}, brokenOff(ctx, err)
	}
	return JobAnswer{Status: resp.StatusCode, Header: resp.Header, Body: body}, nil
}

// send sends a request. The caller closes the body of the answer.
func (j *Jobs) send(ctx context.Context, to providers.Target, r JobRequest) (*http.Response, error) {
	req, err := j.Request(ctx, to, r)
	if err != nil {
		return nil, err
	}
	client := j.client
	if r.Paid {
		client = j.submit
	}
	resp, err := Send(client, req)
	if err != nil {
		return nil, j.explain(err, to.Key, r.Paid)
	}
	return resp, nil
}

// Read is Do for an answer that is a JSON object. A refusal with a 2xx status is a fault.
func (j *Jobs) Read(ctx context.Context, to providers.Target, r JobRequest) (Doc, error) {
	answer, err := j.Do(ctx, to, r)
	if err != nil {
		return nil, err
	}
	doc, err := Decode(answer.Body)
	if err != nil || j.vendor.Refused == nil {
		return doc, err
	}
	if status := j.vendor.Refused(doc); status != 0 {
		fault := Refusal(status, answer.Header)
		fault.Upstream = reply(answer.Status, answer.Header, answer.Body)
		return nil, j.explain(fault, to.Key, r.Paid)
	}
	return doc, nil
}

// Request creates the request without sending it.
func (j *Jobs) Request(ctx context.Context, to providers.Target, r JobRequest) (*http.Request, error) {
	var body io.Reader
	if r.Body != nil {
		body = struct{ io.Reader }{bytes.NewReader(r.Body)} // hides the type, for which net/http would repeat the request
	}
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(to.Channel.BaseURL, j.vendor.Root)+j.vendor.Root+r.Path, body)
	if err != nil {
		return nil, unusable(err)
	}
	if r.Body != nil {
		req.ContentLength = int64(len(r.Body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.Body)), nil } // for Authorize; Send removes it
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

// explain interprets the vendor's error in a refusal and adds the reason, but not for a refused key, a part of which vendors repeat.
func (j *Jobs) explain(err error, key providers.Secret, paid bool) error {
	var fault *providers.Fault
	if !errors.As(err, &fault) || fault.Upstream == nil {
		return err
	}
	fault.Upstream.Format = providers.Format(j.vendor.Name) // not a client's format
	fault.Code = providers.Cut(string(DocOf(fault.Upstream.Body).Get(j.vendor.Code...)), providers.WordLimit)
	if j.vendor.Classify != nil {
		j.vendor.Classify(fault)
	}
	if j.vendor.Failed != nil && fault.Code != "" {
		if failed := j.vendor.Failed(fault.Code); failed != providers.FailedVendor {
			fault.Failed = failed
		}
	}
	reason := j.vendor.Reason(fault.Upstream.Body)
	if fault.Failed == providers.FailedContent || refusesContent(fault.Upstream.Status, reason) {
		// Vendors refuse content with the status of a bad request or of a bad key. Other keys and channels would refuse it too.
		fault.Kind, fault.Failed, fault.Accepted = providers.Invalid, providers.FailedContent, providers.NotAccepted
		fault.Blame, fault.Key, fault.KeyNamed = providers.BlameNone, providers.KeyBusy, false
		fault.Message = "The upstream refused the request for its content."
	}
	if !paid || fault.Retryable() {
		return fault
	}
	if reason != "" {
		fault.Message = "The upstream refused the request: " + providers.Reason(reason, key)
	}
	return fault
}

// refusesContent reports whether the vendor's reason is the content of a prompt or an input.
func refusesContent(status int, reason string) bool {
	switch status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusUnavailableForLegalReasons:
	default:
		return false
	}
	return providers.Mentions(reason, "moderation", "content policy", "content policies", "policy violation", "usage guidelines",
		"usage policy", "usage policies",
		"content guidelines", "safety check", "failed check", "safety system", "safety filter", "content filter", "sensitive content",
		"prohibited content", "nsfw")
}

// Open reads a result at a link. With withKey it sends the key if the link is at the channel's own origin.
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

// Own reports whether a link is at the channel's own origin.
func (j *Jobs) Own(ctx context.Context, to providers.Target, link string) bool {
	_, own, err := j.results.Link(ctx, to.Channel, link)
	return err == nil && own
}

// Content reads a result at a path of the vendor, with the key.
func (j *Jobs) Content(ctx context.Context, to providers.Target, path string) (providers.Video, error) {
	get, err := j.Request(ctx, to, JobRequest{Path: path})
	if err != nil {
		return providers.Video{}, err
	}
	return j.results.Open(to.Channel, get)
}

// Refine interprets a vendor's error in the refusal of a relayed call in the format. It returns other errors unchanged.
func Refine(err error, format providers.Format, classify func(fault *providers.Fault)) error {
	var fault *providers.Fault
	if !errors.As(err, &fault) || fault.Upstream == nil {
		return err
	}
	fault.Upstream.Format = format
	classify(fault)
	return fault
}

// Codes lists the codes of a vendor by what they mean.
type Codes[T comparable] map[T][]string

// Of returns what a code means, otherwise for one that is not listed.
func (c Codes[T]) Of(code string, otherwise T) T {
	for meaning, codes := range c {
		if slices.Contains(codes, code) {
			return meaning
		}
	}
	return otherwise
}

// Reclass gives a fault the meaning of the HTTP status that a vendor's code means.
func Reclass(fault *providers.Fault, status int) {
	as := providers.StatusFault(status)
	fault.Kind, fault.Message, fault.Accepted, fault.Blame, fault.Key = as.Kind, as.Message, as.Accepted, as.Blame, as.Key
}

// Undecided returns the fault of a failed look-up of a lost job. It does not show whether the vendor has accepted the submit.
func Undecided(err error) error {
	fault := *providers.AsFault(err)
	fault.Accepted = providers.AcceptedUnknown
	return &fault
}

// Forgotten reports whether an error is the vendor's answer for an unknown job: 404 or 410.
func Forgotten(err error) bool {
	var fault *providers.Fault
	return errors.As(err, &fault) && fault.Upstream != nil &&
		(fault.Upstream.Status == http.StatusNotFound || fault.Upstream.Status == http.StatusGone)
}

// ForgottenJob returns the status of a job that its vendor does not have.
func ForgottenJob() providers.VideoStatus {
	return providers.VideoStatus{
		State: providers.JobForgotten, Progress: -1,
		Failure: &providers.VideoFailure{Code: providers.FailedForgotten, Message: "The upstream no longer has the job."},
	}
}

// Unread returns the status of a job whose record could not be read: ForgottenJob if the vendor does not have the job.
func Unread(err error) (providers.VideoStatus, error) {
	if Forgotten(err) {
		return ForgottenJob(), nil
	}
	return providers.VideoStatus{}, err
}

// FailedJob returns the status of a job that ended without a video. word is the vendor's status, code one of the Failed constants of
// providers. vendorCode and reason are the vendor's own and may be "". retryable: the vendor is the cause and does not bill it.
func FailedJob(word, code, vendorCode, reason string, retryable bool, key providers.Secret) providers.VideoStatus {
	word = providers.Cut(word, providers.WordLimit)
	var texts []string
	for _, text := range []string{vendorCode, reason} {
		if text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	failure := &providers.VideoFailure{Code: code, Message: providers.Reason(strings.Join(texts, ": "), key), Retryable: retryable}
	if failure.Message == "" {
		failure.Message = "The upstream's job ended as " + strconv.Quote(word) + "."
	}
	return providers.VideoStatus{State: providers.JobFailed, Progress: -1, VendorState: word, Failure: failure}
}

// Priced adds the vendor's charge for a job that has ended, in the vendor's unit. A failed job is billed if the amount is above 0.
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

// ErrNotJSON is in the fault of a complete answer that is not the expected JSON object.
var ErrNotJSON = errors.New("another kind of document")

// Decode reads a JSON object. Anything else is a malformed answer, and the outcome of the request is unknown.
func Decode(body []byte) (Doc, error) {
	if doc := DocOf(body); rawjson.Value(doc).IsObject() && rawjson.Valid(doc) {
		return doc, nil
	}
	return nil, BrokenAnswer("not a JSON object", ErrNotJSON)
}

// OneOutput refuses every output but the first, for vendors that make one video for each job.
func OneOutput(output int) error {
	if output != 0 {
		return providers.Faultf(providers.NotFound, "The job has one video, not %d.", output+1)
	}
	return nil
}

// Reason returns the message of an error answer from the usual members, "" for none. FastAPI lists the errors of a request's fields.
func Reason(body []byte) string {
	answer := DocOf(body)
	text := answer.Get("error.message", "error", "message", "detail")
	if text != "" {
		return string(text)
	}
	text = answer.Get("detail.msg")
	if at := answer.At("detail").Texts("loc"); text != "" && len(at) > 0 {
		return at[len(at)-1] + ": " + string(text)
	}
	return string(text)
}
