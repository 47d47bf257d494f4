package vendorc

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Codes of the service's envelope. A submit with any but success has made no job, as the vendor documents, save for the
// internal ones, of which nobody knows how far they came.
const (
	codeSuccess    = 10000
	codeUnreadable = 50200 // the request's body
	codeDenied     = 50400 // the account may not use the req_key, or owes money
	codeRate       = 50429
	codeConcurrent = 50430
	codeInternal   = 50500
	codeRPC        = 50501
	// codeFirst and codeLast bound the documented refusals of a request or its content.
	codeFirst, codeLast = 50200, 50599
)

// envelope is every answer of the service; Gate is there instead in the answers of the gate in front of it, which never
// let the request through.
type envelope struct {
	Code    *int            `json:"code"`
	Message upstream.Loose  `json:"message"`
	Data    json.RawMessage `json:"data"`
	Gate    *struct {
		Error struct {
			Code    upstream.Loose `json:"Code"`
			Message upstream.Loose `json:"Message"`
		} `json:"Error"`
	} `json:"ResponseMetadata"`
}

// result is the data of a success, of either action.
type result struct {
	TaskID   upstream.Loose `json:"task_id"`
	Status   upstream.Loose `json:"status"`
	VideoURL upstream.Loose `json:"video_url"`
	// RespData is JSON in a string; some models have their links there.
	RespData upstream.Loose `json:"resp_data"`
}

// decode reads an answer of HTTP status 2xx.
func decode(resp *http.Response, raw []byte) (result, error) {
	var e envelope
	// null decodes into anything, and says nothing.
	if err := json.Unmarshal(raw, &e); err != nil || !bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) {
		return result{}, upstream.BrokenAnswer("not the JSON expected", err)
	}
	if e.Code == nil {
		return result{}, upstream.BrokenAnswer("no code", nil)
	}
	if *e.Code == codeSuccess {
		var r result
		if err := json.Unmarshal(e.Data, &r); err != nil {
			return result{}, upstream.BrokenAnswer("no data", err)
		}
		return r, nil
	}
	// A refusal in the dress of a success counts as what its code says.
	fault := upstream.BrokenAnswer("code "+strconv.Itoa(*e.Code), nil)
	if *e.Code >= codeFirst && *e.Code <= codeLast {
		fault = upstream.Refusal(http.StatusBadRequest, resp.Header)
	}
	fault.Upstream = &providers.Reply{
		Status: resp.StatusCode, ContentType: resp.Header.Get("Content-Type"), Body: raw[:min(len(raw), upstream.MaxErrorBody)],
	}
	refine(fault)
	return result{}, fault
}

// read gives the envelope of an error answer; one without a code or a gate says nothing.
func read(fault *providers.Fault) envelope {
	var e envelope
	if fault.Upstream != nil {
		// Where these are not the vendor's words, the status has said enough.
		_ = json.Unmarshal(fault.Upstream.Body, &e)
	}
	return e
}

// refine classes a fault by the vendor's code, which says more than its HTTP status.
func refine(fault *providers.Fault) {
	fault.Upstream.Format = providers.VendorC
	e := read(fault)
	switch {
	case e.Gate != nil:
		fault.Code = providers.Cut(string(e.Gate.Error.Code), providers.WordLimit)
		refineGate(fault)
		return
	case e.Code == nil:
		return
	}
	fault.Code, fault.Failed = strconv.Itoa(*e.Code), failureCode(*e.Code)
	switch *e.Code {
	case codeRate, codeConcurrent:
		class(fault, http.StatusTooManyRequests)
	case codeDenied:
		class(fault, http.StatusForbidden)
	case codeInternal, codeRPC:
		class(fault, http.StatusInternalServerError)
	}
}

// failureCode is the product's word for the service's code, of a job that failed and of a submit that was refused. Where the review
// itself is broken (50520 to 50522), nothing is said of the content. "" of a code that says nothing.
func failureCode(code int) string {
	switch code {
	case 50411, 50412, 50413, 50511, 50512, 50514, 50516, 50518, 50519:
		return providers.FailedContent
	}
	switch {
	case code >= codeFirst && code < codeDenied:
		return providers.FailedInput
	case code >= codeInternal && code <= codeLast:
		return providers.FailedVendor
	default:
		return ""
	}
}

// refineGate classes a fault of the gate. What it says of the signature speaks against the gateway's own key or clock,
// and never against the request.
func refineGate(fault *providers.Fault) {
	switch fault.Code {
	case "MissingRequestInfo", "MissingSignature", "MissingAuthenticationToken", "InvalidTimestamp", "InvalidAuthorization", "InvalidCredential",
		"InvalidAccessKey", "SignatureDoesNotMatch", "InvalidSecretToken":
		class(fault, http.StatusUnauthorized)
	case "AccessDenied":
		class(fault, http.StatusForbidden)
	case "ServiceNotFound", "InvalidActionOrVersion", "MethodNotAllowed":
		// The channel leads to something else than this service.
		fault.Kind, fault.Message = providers.Upstream, "The channel's address is not this vendor's."
		fault.Accepted, fault.Blame = providers.NotAccepted, providers.BlameChannel
	case "FlowLimitExceeded":
		class(fault, http.StatusTooManyRequests)
	}
}

// class makes a fault one of the HTTP status that its code means.
func class(fault *providers.Fault, status int) {
	as := upstream.Refusal(status, nil)
	fault.Kind, fault.Message, fault.Accepted, fault.Blame, fault.Key = as.Kind, as.Message, as.Accepted, as.Blame, as.Key
}

// explain gives a refused submit the vendor's reason, which the client needs to mend its request. A refused key explains
// nothing: the vendor's words repeat a part of it.
func explain(err error, key providers.Secret) error {
	var fault *providers.Fault
	if !errors.As(err, &fault) || fault.Upstream == nil || fault.Retryable() {
		return err
	}
	if said := reason(read(fault), key); said != "" {
		fault.Message = "The upstream refused the request: " + said
	}
	return fault
}

// reason is the vendor's own words, fit to be shown.
func reason(e envelope, key providers.Secret) string {
	said := string(e.Message)
	if e.Gate != nil {
		said = string(e.Gate.Error.Message)
	}
	access, secret := split(key)
	return providers.Reason(said, providers.Secret(access), providers.Secret(secret))
}

// jobFailure tells the end of a job from a look that failed. The vendor answers the look at a failed job with HTTP 400
// and the failure's code.
func jobFailure(err error, key providers.Secret) (providers.VideoStatus, error) {
	var fault *providers.Fault
	if !errors.As(err, &fault) || fault.Upstream == nil {
		return providers.VideoStatus{}, err
	}
	e := read(fault)
	if status := fault.Upstream.Status; e.Code == nil || status != http.StatusBadRequest && status != http.StatusOK {
		return providers.VideoStatus{}, err
	}
	switch code := *e.Code; {
	case code == codeUnreadable, code == codeDenied, code == codeRate, code == codeConcurrent, code < codeFirst, code > codeLast:
		return providers.VideoStatus{}, err // of the look
	}
	failure := providers.VideoFailure{Code: fault.Code, Message: reason(e, key)}
	if failure.Message == "" {
		failure.Message = "The upstream's job failed with code " + fault.Code + "."
	}
	failure = failure.As(cmp.Or(fault.Failed, providers.FailedVendor))
	return providers.VideoStatus{State: providers.JobFailed, Progress: -1, Word: fault.Code, Failure: &failure}, nil
}

// status reads the vendor's words. An unknown one, and none at all, means still running.
func (r result) status() (providers.VideoStatus, error) {
	s := providers.VideoStatus{State: providers.JobRunning, Progress: -1, Word: providers.Cut(string(r.Status), providers.WordLimit)}
	switch r.Status {
	case "in_queue":
		s.State = providers.JobQueued
	case "done":
		if r.link() == "" {
			// The failure of a job has a code of its own; this is neither.
			return providers.VideoStatus{}, upstream.BrokenAnswer("done without a link", nil)
		}
		s.State, s.Outputs = providers.JobDone, 1
	case "not_found":
		s.State = providers.JobForgotten
		s.Failure = &providers.VideoFailure{Code: codeForgotten, Message: "The upstream no longer knows the job."}
	case "expired":
		s.State = providers.JobFailed
		s.Failure = &providers.VideoFailure{Code: "upstream_expired", Message: "The upstream's job expired."}
	}
	return s, nil
}

// link is where the video lies; "" where the result does not say.
func (r result) link() string {
	if r.VideoURL != "" {
		return string(r.VideoURL)
	}
	var inner struct {
		URLs []upstream.Loose `json:"urls"`
	}
	// What is not such an object has no link.
	_ = json.Unmarshal([]byte(r.RespData), &inner)
	for _, link := range inner.URLs {
		if link != "" {
			return string(link)
		}
	}
	return ""
}
