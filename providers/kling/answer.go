package kling

import (
	"cmp"
	"net/http"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	// resultLife is how long the vendor keeps results.
	resultLife = 30 * 24 * time.Hour
	// leastPoll is the shortest interval between two polls that the vendor permits.
	leastPoll = 5 * time.Second
	// codeMissing is the vendor's code for a job or a model that it does not have.
	codeMissing = "1203"
)

// The names of a job's members are those of the API with the model in the path, then those of the older one.

func idOf(job upstream.Doc) upstream.Loose { return job.Get("id", "task_id") }

// videoOf returns the video of a job. Images and audio may be there as well.
func videoOf(job upstream.Doc) upstream.Doc {
	for one := range job.All("outputs") {
		if one.Get("type") == "video" && one.Get("url") != "" {
			return one
		}
	}
	for one := range job.All("task_result.videos") {
		if one.Get("url") != "" {
			return one
		}
	}
	return nil
}

// links returns the link to the video, which requires no key.
func links(job upstream.Doc) []string { return videoOf(job).Texts("url") }

func status(job upstream.Doc, links []string, key providers.Secret) (s providers.VideoStatus, err error) {
	state, reason := job.Get("status", "task_status"), string(job.Get("message", "task_status_msg"))
	if state == "failed" {
		s = upstream.FailedJob(string(state), failureCode(reason), "", reason, false, key)
	} else {
		s, err = upstream.States{Queued: "submitted", Done: "succeeded succeed", Life: resultLife}.Status(state, links)
	}
	if s.State == providers.JobDone {
		s.Seconds = videoOf(job).Get("duration").Number()
	}
	for charge := range job.All("billing") {
		if amount := charge.Get("amount"); amount != "" { // cash, or units of a package
			return upstream.Priced(s, amount, string(cmp.Or(charge.Get("currency", "package_type", "charge_type"), "units"))), err
		}
	}
	return s, err
}

func failureCode(reason string) string {
	if providers.Mentions(reason, "risk control", "sensitive", "policy", "moderation", "safety") {
		return providers.FailedContent
	}
	return providers.FailedVendor
}

// refusalCode returns the Failed constant for the vendor's code of a create that was refused.
func refusalCode(code string) string {
	return upstream.Codes[string]{
		providers.FailedContent: {"1300", "1301"}, // the platform's policy, the content
		providers.FailedInput:   {"1200", "1201"},
	}.Of(code, providers.FailedVendor)
}

// classify decides by the vendor's code and not by the status: an account without credit is a 429.
func classify(fault *providers.Fault) {
	if status := (upstream.Codes[int]{
		http.StatusUnauthorized:        {"1000", "1001", "1002", "1003", "1004", "1304"},
		http.StatusPaymentRequired:     {"1100", "1101", "1102"},
		http.StatusForbidden:           {"1103"},
		http.StatusBadRequest:          {"1200", "1201", "1300", "1301"},
		http.StatusNotFound:            {"1202", codeMissing},
		http.StatusTooManyRequests:     {"1302", "1303"},
		http.StatusInternalServerError: {"5000", "5002"},
		http.StatusServiceUnavailable:  {"5001"},
	}).Of(fault.Code, 0); status != 0 {
		upstream.Reclass(fault, status)
	}
}
