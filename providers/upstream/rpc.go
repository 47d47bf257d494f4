package upstream

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"modelrelay/providers"
)

// statusClientClosed is the status with which Google's front end gives up a request that the service may have accepted.
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

// ReadRPCError reads {"error":{"code","message","status","details"}}, which may be in an array. Fields that it cannot read are
// empty.
func ReadRPCError(body []byte) RPCError {
	type answer struct {
		Error json.RawMessage `json:"error"`
	}
	var one answer
	if trimmed := bytes.TrimSpace(body); bytes.HasPrefix(trimmed, []byte("[")) {
		var list []answer
		if json.Unmarshal(trimmed, &list) == nil && len(list) > 0 {
			one = list[0]
		}
	} else {
		_ = json.Unmarshal(trimmed, &one) // an error leaves it empty
	}
	return ParseRPCError(one.Error)
}

// ParseRPCError reads a google.rpc.Status. Fields that it cannot read are empty.
func ParseRPCError(raw json.RawMessage) RPCError {
	var status struct {
		Code    Loose `json:"code"`
		Status  Loose `json:"status"`
		Message Loose `json:"message"`
		Details []struct {
			Reason     Loose `json:"reason"`
			RetryDelay Loose `json:"retryDelay"`
			Violations []struct {
				QuotaID Loose `json:"quotaId"` // contains the period
			} `json:"violations"`
		} `json:"details"`
	}
	_ = json.Unmarshal(raw, &status) // fields of another type stay empty
	said := RPCError{Code: string(status.Code), Status: string(status.Status), Message: string(status.Message)}
	for _, detail := range status.Details {
		if detail.Reason != "" {
			said.Reason = string(detail.Reason)
		}
		if delay, err := time.ParseDuration(string(detail.RetryDelay)); err == nil && delay > 0 {
			said.RetryDelay = delay
		}
		for _, violation := range detail.Violations {
			said.DailyQuota = said.DailyQuota || strings.Contains(string(violation.QuotaID), "PerDay")
		}
	}
	return said
}

// RPCReason returns the message of an error answer, for JobVendor.Reason.
func RPCReason(body []byte) string { return ReadRPCError(body).Message }

// ClassifyRPC interprets a google.rpc.Status beyond the HTTP status. A wrong key, a project without billing and a project in an
// unsupported country have status 400.
func ClassifyRPC(fault *providers.Fault) {
	said := ReadRPCError(fault.Upstream.Body)
	for _, code := range []string{said.Reason, said.Status, said.Code} {
		if fault.Code == "" {
			fault.Code = providers.Cut(code, providers.WordLimit)
		}
	}
	if word := RPCFailure(said); word != providers.FailedVendor {
		fault.Failed = word
	}
	if fault.RetryAfter == 0 {
		fault.RetryAfter = said.RetryDelay
	}
	switch status := fault.Upstream.Status; {
	case status == statusClientClosed:
		Reclass(fault, http.StatusBadGateway)
	case said.Reason == "BILLING_DISABLED":
		fault.RefuseKey(providers.KeyExhausted)
	case status == http.StatusBadRequest && said.Reason == "API_KEY_INVALID":
		fault.RefuseKey(providers.KeyRefused)
	case status == http.StatusBadRequest && said.Status == "FAILED_PRECONDITION":
		fault.RefuseKey(providers.KeyForbidden)
	case status == http.StatusNotFound && strings.Contains(strings.ToLower(said.Message), "model"):
		fault.Kind, fault.Message = providers.ModelNotFound, "The upstream does not have the model."
	}
}

// RPCFailure returns the Failed constant for the error of a failed job or a refused create. Google's services mark refused content
// in the code or the message.
func RPCFailure(said RPCError) string {
	text := strings.Join([]string{said.Code, said.Status, said.Reason, said.Message}, "; ")
	if providers.Says(text, "safety", "prohibited", "blocklist", "spii", "usage guidelines", "responsible ai", "support code",
		"support codes") {
		return providers.FailedContent
	}
	word := said.Status
	if word == "" {
		word = said.Code
	}
	switch strings.ToLower(word) { // numbers of google.rpc.Code and of HTTP
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
