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

// The codes of the service's envelope. A submit with any code but success has made no job, as the vendor documents, except the
// internal codes, after which the outcome is unknown.
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
	// null decodes into any struct.
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
	// A refusal with status 200 has the meaning of its code.
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

// read returns the envelope of an error answer, zero for one without a code or a gate.
func read(fault *providers.Fault) envelope {
	var e envelope
	if fault.Upstream != nil {
		// Errors leave the fields empty; the status is enough.
		_ = json.Unmarshal(fault.Upstream.Body, &e)
	}
	return e
}

// refine classifies a fault by the vendor's code, which is more precise than its HTTP status.
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

// failureCode returns the Failed constant for the code of a failed job or a refused submit. Codes 50520 to 50522 mean that the
// review itself failed, not that the content was refused. It returns "" for an unknown code.
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

// refineGate classifies a fault of the gate. A signature error is the fault of the gateway's key or clock, never of the request.
func refineGate(fault *providers.Fault) {
	switch fault.Code {
	case "MissingRequestInfo", "MissingSignature", "MissingAuthenticationToken", "InvalidTimestamp", "InvalidAuthorization",
		"InvalidCredential",
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

// explain adds the vendor's reason to a refused submit, which the client needs to fix its request. For a refused key it adds none,
// because the vendor repeats a part of the key.
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

// reason returns the vendor's reason, prepared for display.
func reason(e envelope, key providers.Secret) string {
	said := string(e.Message)
	if e.Gate != nil {
		said = string(e.Gate.Error.Message)
	}
	access, secret := split(key)
	return providers.Reason(said, providers.Secret(access), providers.Secret(secret))
}

// jobFailure distinguishes the end of a job from a failed poll. The vendor answers the poll of a failed job with HTTP 400 and the
// failure's code.
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
		return providers.VideoStatus{}, err // of the poll
	}
	failure := providers.VideoFailure{Code: fault.Code, Message: reason(e, key)}
	if failure.Message == "" {
		failure.Message = "The upstream's job failed with code " + fault.Code + "."
	}
	failure = failure.As(cmp.Or(fault.Failed, providers.FailedVendor))
	return providers.VideoStatus{State: providers.JobFailed, Progress: -1, Word: fault.Code, Failure: &failure}, nil
}

// status maps the upstream's status. An unknown status, or none, means running.
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

// link is the link to the video; "" for none.
func (r result) link() string {
	if r.VideoURL != "" {
		return string(r.VideoURL)
	}
	var inner struct {
		URLs []upstream.Loose `json:"urls"`
	}
	// Errors leave it empty.
	_ = json.Unmarshal([]byte(r.RespData), &inner)
	for _, link := range inner.URLs {
		if link != "" {
			return string(link)
		}
	}
	return ""
}
