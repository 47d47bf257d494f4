package omni

import (
	"cmp"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// partOf returns the first part of a kind in the output, which has one of the members; nil for none. Thoughts are in other steps.
func partOf(job upstream.Doc, kind upstream.Loose, members ...string) upstream.Doc {
	for step := range job.All("steps") {
		if step.Get("type") != "model_output" {
			continue
		}
		for part := range step.All("content") {
			if part.Get("type") == kind && part.Get(members...) != "" {
				return part
			}
		}
	}
	return nil
}

// videoOf returns the readable video part, nil for none.
func videoOf(job upstream.Doc) upstream.Doc { return partOf(job, "video", "uri", "data") }

// tokensOf returns the tokens of the input and of the video, which the vendor bills.
func tokensOf(job upstream.Doc) (tokens providers.VideoTokens) {
	tokens.Input = job.Get("usage.total_input_tokens").Count()
	for one := range job.All("usage.output_tokens_by_modality") {
		if one.Get("modality") == "video" {
			tokens.Output += one.Get("tokens").Count()
		}
	}
	return tokens
}

func statusOf(job upstream.Doc, key providers.Secret) (providers.VideoStatus, error) {
	state, video := job.Get("status"), videoOf(job)
	word := string(state)
	failed := func(code, vendorCode, reason string) (providers.VideoStatus, error) {
		return upstream.FailedJob(word, code, vendorCode, reason, false, key), nil
	}
	switch word {
	case "completed": // an answer of an unknown shape may have a video; one with text and without tokens is a refusal
		if words := partOf(job, "text", "text").Get("text"); video == nil && tokensOf(job).Output == 0 && words != "" {
			return failed(providers.FailedContent, "", string(words))
		}
	case "failed":
		rpcError := upstream.RPCErrorOf(job.At("error"))
		if job.At("error") == nil {
			rpcError = upstream.RPCErrorOf(job.At("errors"))
		}
		return failed(upstream.RPCFailure(rpcError), cmp.Or(rpcError.Status, rpcError.Code), rpcError.Message)
	case "budget_exceeded":
		return failed(providers.FailedQuota, word, "The job took more than the upstream's budget.")
	case "cancelled", "incomplete", "requires_action":
		return failed(providers.FailedVendor, word, "The upstream ended the job.")
	}
	s, err := upstream.States{Queued: "queued", Done: "completed"}.Status(state, video.Texts("uri", "data"))
	if s.State == providers.JobDone {
		s.Outputs, s.Tokens = 1, tokensOf(job)
		created, updated := job.Get("created"), job.Get("updated")
		s.Took = upstream.Took(created, updated)
		if video.Get("uri") != "" {
			ended := updated.Time()
			if ended.IsZero() {
				ended = time.Now().UTC()
			}
			s.ExpiresAt = ended.Add(fileLife)
		}
	}
	return s, err
}
