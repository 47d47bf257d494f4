package generic

import (
	"context"
	"net/http"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

func read(ctx context.Context, jobs *upstream.Jobs, to providers.Target, ticket providers.Ticket) (upstream.Doc, error) {
	document, err := jobs.Read(ctx, to, upstream.JobRequest{Path: taskPath(ticket)})
	return taskOf(document), err
}

// taskOf returns the task of a document, bare or in a "data" object.
func taskOf(document upstream.Doc) upstream.Doc {
	if data := document.At("data"); document.Get("status", "task_id", "id") == "" && data != nil {
		return data
	}
	return document
}

// links returns the links of the videos of a task in order. Gateways that deviate from the contract have one link in another member.
func links(task upstream.Doc) []string {
	if all := task.Texts("urls"); len(all) > 0 {
		return all
	}
	link := task.Get("url", "video_url", "result_url")
	if old := task.Get("fail_reason"); link == "" && strings.HasPrefix(string(old), "http") {
		link = old
	}
	if link == "" {
		return nil
	}
	return []string{string(link)}
}

// classify reads the upstream's code in a refusal, and the field that it names.
func classify(fault *providers.Fault) {
	fault.Upstream.Format = providers.OpenAI
	switch {
	case fault.Upstream.Status == http.StatusConflict, fault.Upstream.Status == http.StatusUnprocessableEntity &&
		fault.Code == "idempotency_mismatch":
		// The upstream has this attempt's task, or is creating it; the answer was lost.
		fault.Accepted = providers.AcceptedUnknown
	case fault.Code == "insufficient_quota":
		fault.RefuseKey(providers.KeyBusy)
	case fault.Code == "model_not_found":
		fault.Kind, fault.Message = providers.ModelNotFound, "The upstream does not have the model."
	}
	if !fault.Retryable() {
		fault.Param = string(upstream.DocOf(fault.Upstream.Body).Get("error.param"))
	}
}
