package wan

import (
	"net/http"
	"slices"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

func refusalCode(code string) string {
	as, _ := failureCode(code)
	return as
}

// failureCode returns the Failed constant for the vendor's code of a failed job, and whether the vendor is the cause. None is billed.
func failureCode(code string) (as string, retryable bool) {
	within := func(codes ...string) bool {
		return slices.ContainsFunc(codes, func(known string) bool { return code == known || strings.HasPrefix(code, known+".") })
	}
	switch {
	case within("DataInspectionFailed", "IPInfringementSuspect", "CustomRoleBlocked", "FaqRuleBlocked"):
		return providers.FailedContent, false
	case within("InvalidParameter", "BadRequest", "InvalidURL"), strings.HasPrefix(code, "InvalidFile"),
		strings.HasPrefix(code, "InvalidImage"):
		return providers.FailedInput, false
	case within("InternalError.Timeout", "RequestTimeOut"):
		return providers.FailedTimeout, true
	case within("InternalError", "SystemError", "ModelServiceFailed", "ModelServingError", "ModelUnavailable"):
		return providers.FailedVendor, true
	case within("Arrearage", "Throttling", "AllocationQuota", "CommodityNotPurchased", "PrepaidBillOverdue", "PostpaidBillOverdue"):
		return providers.FailedQuota, false
	}
	return providers.FailedVendor, false
}

// classify interprets the vendor's error beyond the status: an account in debt is a 400, an account without a purchase a 429.
func classify(fault *providers.Fault) {
	switch status := fault.Upstream.Status; fault.Code {
	case "Arrearage", "CommodityNotPurchased", "PrepaidBillOverdue", "PostpaidBillOverdue", "AllocationQuota.FreeTierOnly":
		if status/100 == 4 {
			fault.RefuseKey(providers.KeyExhausted)
		}
	case "Throttling.AllocationQuota":
		if status == http.StatusTooManyRequests && strings.Contains(strings.ToLower(upstream.Reason(fault.Upstream.Body)), "free allocated quota") {
			fault.RefuseKey(providers.KeyExhausted)
		}
	case "WorkSpaceNotFound":
		if status == http.StatusNotFound {
			fault.RefuseKey(providers.KeyForbidden)
		}
	case "ModelNotFound":
		if status == http.StatusNotFound {
			fault.Kind, fault.Message = providers.ModelNotFound, "The upstream does not have the model."
		}
	}
}
