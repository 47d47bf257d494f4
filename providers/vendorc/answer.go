package vendorc

import (
	"cmp"
	"net/http"
	"strconv"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// The codes of the service's envelope. A submit with any code but success has made no job, except the internal codes: then it is unknown.
const (
	codeSuccess    = "10000"
	codeUnreadable = "50200" // the request's body
	codeDenied     = "50400" // the account may not use the req_key, or owes money
	codeRate       = "50429"
	codeConcurrent = "50430"
	codeInternal   = "50500"
	codeRPC        = "50501"
	// codeFirst and codeLast bound the documented refusals: up to codeInput of the request, from codeOwn on of the service.
	codeFirst, codeInput, codeOwn, codeLast = 50200, 50400, 50500, 50599
)

// codes are the paths of a code: in the service's answers, and in those of the gate in front of it, which never let the request through.
func codes() []string { return []string{"code", "ResponseMetadata.Error.Code"} }

func reason(body []byte) string {
	return string(upstream.DocOf(body).Get("message", "ResponseMetadata.Error.Message"))
}

// statusOf returns the HTTP status that the code of a refusal with status 200 means.
func statusOf(code string) int {
	if n, err := strconv.Atoi(code); err == nil && n >= codeFirst && n <= codeLast {
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// classify interprets the vendor's code. A signature error is the fault of the gateway's key or clock, never of the request.
func classify(fault *providers.Fault) {
	fault.Failed = failureCode(fault.Code)
	switch fault.Code {
	case codeRate, codeConcurrent, "FlowLimitExceeded":
		upstream.Reclass(fault, http.StatusTooManyRequests)
	case codeDenied, "AccessDenied":
		upstream.Reclass(fault, http.StatusForbidden)
	case codeInternal, codeRPC:
		upstream.Reclass(fault, http.StatusInternalServerError)
	case "MissingRequestInfo", "MissingSignature", "MissingAuthenticationToken", "InvalidTimestamp", "InvalidAuthorization",
		"InvalidCredential", "InvalidAccessKey", "SignatureDoesNotMatch", "InvalidSecretToken":
		upstream.Reclass(fault, http.StatusUnauthorized)
	case "ServiceNotFound", "InvalidActionOrVersion", "MethodNotAllowed":
		// The channel's address is not that of this service.
		fault.Kind, fault.Message = providers.Upstream, "The channel's address is not this vendor's."
		fault.Accepted, fault.Blame = providers.NotAccepted, providers.BlameChannel
	}
}

// failureCode returns the Failed constant for the code of a failed job or a refused submit. Codes 50520 to 50522 mean that the
// review itself failed, not that the content was refused. It returns "" for an unknown code.
func failureCode(code string) string {
	switch code {
	case "50411", "50412", "50413", "50511", "50512", "50514", "50516", "50518", "50519":
		return providers.FailedContent
	}
	switch n, _ := strconv.Atoi(code); { // a code of the gate: 0
	case n >= codeFirst && n < codeInput:
		return providers.FailedInput
	case n >= codeOwn && n <= codeLast:
		return providers.FailedVendor
	default:
		return ""
	}
}

// endsJob distinguishes the end of a job from a failed poll. The vendor answers the poll of a failed job with a 400 and its code.
func endsJob(fault *providers.Fault) bool {
	if fault == nil || fault.Upstream == nil {
		return false
	}
	switch fault.Code {
	case codeUnreadable, codeDenied, codeRate, codeConcurrent: // of the poll
		return false
	}
	status := fault.Upstream.Status
	return (status == http.StatusBadRequest || status == http.StatusOK) && statusOf(fault.Code) == http.StatusBadRequest
}

// refused returns the status of a code other than that of success. Another server's document has no code.
func refused(answer upstream.Doc) int {
	if code := answer.Get("code"); code != codeSuccess {
		return statusOf(string(code))
	}
	return 0
}

func status(job upstream.Doc, links []string, key providers.Secret) (providers.VideoStatus, error) {
	if code := string(job.Get("code")); code != codeSuccess {
		message := string(job.Get("message"))
		shown := code
		if message == "" {
			shown = ""
		}
		return upstream.FailedJob(code, cmp.Or(failureCode(code), providers.FailedVendor), shown, message, false, key), nil
	}
	state := job.Get("data.status")
	switch word := string(state); word {
	case "not_found":
		s := upstream.ForgottenJob()
		s.VendorState = word
		return s, nil
	case "expired":
		return upstream.FailedJob(word, "upstream_expired", "", "The upstream's job expired.", false, key), nil
	}
	return upstream.States{Queued: "in_queue", Done: "done"}.Status(state, links)
}

// links returns the link to the video. Some models have it in JSON in a string.
func links(job upstream.Doc) []string {
	if link := job.Get("data.video_url"); link != "" {
		return []string{string(link)}
	}
	return upstream.Link("urls")(upstream.DocOf([]byte(job.Get("data.resp_data"))))
}
