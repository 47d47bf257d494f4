package chat

import (
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

func (a *answer) count(usage rawjson.Value, to []form.Event) []form.Event {
	if !usage.IsObject() {
		return to
	}
	c := form.Counts{}
	var hit int64
	for name, value := range usage.Members() {
		n, _ := value.Count()
		switch string(name.Decoded()) {
		case "prompt_tokens":
			c.Input = n
		case "completion_tokens":
			c.Output = n
		case "prompt_tokens_details":
			c.Read, _ = value.Get("cached_tokens").Count()
			c.Write, _ = value.Get("cache_write_tokens").Count()
			c.AudioIn, _ = value.Get("audio_tokens").Count()
		case "completion_tokens_details":
			c.Reasoning, _ = value.Get("reasoning_tokens").Count()
			c.AudioOut, _ = value.Get("audio_tokens").Count()
		case "prompt_cache_hit_tokens", "cached_tokens": // of DeepSeek, and of Moonshot
			hit = n
		}
	}
	if c.Read == 0 {
		c.Read = hit
	}
	a.counts = c
	return append(to, form.Event{Kind: form.EventCounts, Counts: &a.counts})
}

func writeUsage(out *form.Out, c *form.Counts) {
	out.JSON(`"usage":{"prompt_tokens":?,"completion_tokens":?,"total_tokens":?`, c.Input, c.Output, c.Input+c.Output)
	out.JSON(`"prompt_tokens_details":{"cached_tokens":?,"cache_write_tokens":?,"audio_tokens":?}`, c.Read, c.Write, c.AudioIn)
	out.JSON(`"completion_tokens_details":{"reasoning_tokens":?,"audio_tokens":?`, c.Reasoning, c.AudioOut)
	out.JSON(`"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`)
}
