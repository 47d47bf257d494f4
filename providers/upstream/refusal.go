package upstream

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"modelrelay/providers"
)

// Refusal returns the fault of an answer that is not 2xx, from its status and its Retry-After. A vendor's codes refine it.
func Refusal(status int, header http.Header) *providers.Fault {
	fault := providers.StatusFault(status)
	fault.RetryAfter = RetryAfter(header)
	return fault
}

// RetryAfter returns the wait that an upstream requests: retry-after-ms, otherwise Retry-After; 0 for none or a past time.
func RetryAfter(header http.Header) time.Duration {
	if d, ok := wait(header.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	value := strings.TrimSpace(header.Get("Retry-After"))
	if d, ok := wait(value, time.Second); ok {
		return d
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

// wait reads a decimal number of units between zero and a year.
func wait(text string, unit time.Duration) (time.Duration, bool) {
	const sense = 366 * 24 * time.Hour
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	n *= float64(unit)
	return time.Duration(n), err == nil && n >= 0 && n < float64(sense)
}
