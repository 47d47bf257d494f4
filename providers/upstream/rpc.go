package upstream

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"time"

	"modelrelay/providers"
)

// statusClientClosed is the status with which Google's front end cancels a request that the service may have accepted.
const statusClientClosed = 499

// RPCError is an error of a vendor that sends google.rpc.Status.
type RPCError struct {
	// Code is a number of google.rpc.Code or of HTTP, or a name. Status is the name in google.rpc.Code.
	Code, Status, Message string
	// Reason is from ErrorInfo, RetryDelay from RetryInfo; "" and 0 for none.
	Reason     string
	RetryDelay time.Duration
	// DailyQuota: a QuotaFailure names a quota of a day, which returns at its end. RetryDelay is then that of a minute's quota.
	DailyQuota bool
}

// RPCErrorOf reads a google.rpc.Status. Fields that it cannot read are empty.
func RPCErrorOf(status Doc) RPCError {
	rpcError := RPCError{
		Code: string(status.Get("code")), Status: string(status.Get("status")), Message: string(status.Get("message")),
		Reason: string(status.Get("details.reason")),
	}
	if delay, err := time.ParseDuration(string(status.Get("details.retryDelay"))); err == nil && delay > 0 {
		rpcError.RetryDelay = delay
	}
	for _, quota := range status.Texts("details.violations.quotaId") {
		rpcError.DailyQuota = rpcError.DailyQuota || strings.Contains(quota, "PerDay")
	}
	return rpcError
}

// Download returns the address of the bytes of one of Google's files, …/files/ID or …/files/ID:download. Other addresses stay.
func Download(uri string) string {
	at, err := url.Parse(uri)
	if err != nil || RPCFile(uri) == "" {
		return uri
	}
	at.Path = strings.TrimSuffix(at.Path, download) + download
	query := at.Query()
	query.Set("alt", "media")
	at.RawQuery = query.Encode()
	return at.String()
}

// download ends the path of a file's bytes.
const download = ":download"

// RPCFile returns the id of a file in its address, "" for another address.
func RPCFile(uri string) string {
	at, err := url.Parse(uri)
	if err != nil {
		return ""
	}
	_, name, found := strings.Cut(at.Path, "/files/")
	if name = strings.TrimSuffix(name, download); !found || strings.Contains(name, "/") {
		return ""
	}
	return name
}

// ClassifyRPC interprets a google.rpc.Status beyond the HTTP status. Status 400 may be about the key or the project.
func ClassifyRPC(fault *providers.Fault) {
	rpcError := RPCErrorOf(DocOf(fault.Upstream.Body).At("error"))
	fault.Code = providers.Cut(cmp.Or(rpcError.Reason, rpcError.Status, rpcError.Code), providers.WordLimit)
	if failed := RPCFailure(rpcError); failed != providers.FailedVendor {
		fault.Failed = failed
	}
	if fault.RetryAfter == 0 {
		fault.RetryAfter = rpcError.RetryDelay
	}
	switch status := fault.Upstream.Status; {
	case status == statusClientClosed:
		Reclass(fault, http.StatusBadGateway)
	case rpcError.Reason == "BILLING_DISABLED":
		fault.RefuseKey(providers.KeyExhausted)
	case status == http.StatusBadRequest && rpcError.Reason == "API_KEY_INVALID":
		fault.RefuseKey(providers.KeyRefused)
	case status == http.StatusBadRequest && rpcError.Status == "FAILED_PRECONDITION":
		fault.RefuseKey(providers.KeyForbidden)
	case status == http.StatusNotFound && strings.Contains(strings.ToLower(rpcError.Message), "model"):
		fault.Kind, fault.Message = providers.ModelNotFound, "The upstream does not have the model."
	}
}

// RPCFailure returns the Failed constant for the error of a failed job or a refused create.
func RPCFailure(rpcError RPCError) string {
	text := strings.Join([]string{rpcError.Code, rpcError.Status, rpcError.Reason, rpcError.Message}, "; ")
	if providers.Mentions(text, "safety", "prohibited", "blocklist", "spii", "usage guidelines", "responsible ai", "support code",
		"support codes") {
		return providers.FailedContent
	}
	switch strings.ToLower(cmp.Or(rpcError.Status, rpcError.Code)) { // numbers of google.rpc.Code and of HTTP
	case "3", "11", "400", "invalid_request", "invalid_argument", "out_of_range":
		return providers.FailedInput
	case "4", "504", "deadline_exceeded":
		return providers.FailedTimeout
	case "8", "429", "resource_exhausted":
		return providers.FailedQuota
	default:
		return providers.FailedVendor
	}
}
