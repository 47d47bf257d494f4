package chat

import (
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

func (a *answer) count(usage rawjson.Value, to []form.Event) []form.Event {
	if !usage.IsObject() {
		return to
	}
	a.counts = form.OpenAICounts(usage, "prompt_tokens", "completion_tokens")
	for _, name := range [...]string{"prompt_cache_hit_tokens", "cached_tokens"} { // of DeepSeek, and of Moonshot
		if a.counts.Read == 0 {
			a.counts.Read, _ = usage.Get(name).Count()
		}
	}
	return append(to, form.Event{Kind: form.EventCounts, Counts: &a.counts})
}

func writeUsage(out *form.Out, c *form.Counts) {
	out.JSON(`"usage":{"prompt_tokens":?,"completion_tokens":?,"total_tokens":?`, c.Input, c.Output, c.Input+c.Output)
	out.JSON(`"prompt_tokens_details":{"cached_tokens":?,"cache_write_tokens":?,"audio_tokens":?}`, c.Read, c.Write, c.AudioIn)
	out.JSON(`"completion_tokens_details":{"reasoning_tokens":?,"audio_tokens":?`, c.Reasoning, c.AudioOut)
	out.JSON(`"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`)
}
