package messages

import (
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// usage has the vendor's counts: its input excludes the tokens that were read from or written to the cache. See the type Usage.
type usage struct {
	input, cacheRead, cacheWrite, cacheWrite1h, output, thinking int64
}

// read adds the counts of a usage object, and reports whether the value is one.
func (u *usage) read(value rawjson.Value) bool {
	for name, member := range value.Members() {
		set := func(count *int64, value rawjson.Value) {
			if n, ok := value.Count(); ok && (n > 0 || *count == 0) { // a zero does not replace an earlier number
				*count = n
			}
		}
		switch string(name.Decoded()) {
		case "input_tokens":
			set(&u.input, member)
		case "cache_read_input_tokens":
			set(&u.cacheRead, member)
		case "cache_creation_input_tokens":
			set(&u.cacheWrite, member)
		case "cache_creation":
			set(&u.cacheWrite1h, member.Get("ephemeral_1h_input_tokens"))
		case "output_tokens":
			set(&u.output, member)
		case "output_tokens_details":
			set(&u.thinking, member.Get("thinking_tokens"))
		}
	}
	return value.IsObject()
}

func (u *usage) counts() form.Counts {
	return form.Counts{
		Input: u.input + u.cacheRead + u.cacheWrite, Read: u.cacheRead, Write: u.cacheWrite, Write1h: u.cacheWrite1h,
		Output: u.output, Reasoning: u.thinking,
	}
}

// writeUsage writes counts. A stream has all of them at its start and at its end, because some clients read only one.
func writeUsage(out *form.Out, c *form.Counts, searches int64) {
	out.JSON(`{"input_tokens":?,"cache_creation_input_tokens":?,"cache_read_input_tokens":?`,
		max(0, c.Input-c.Read-c.Write), c.Write, c.Read)
	out.JSON(`"cache_creation":{"ephemeral_5m_input_tokens":?,"ephemeral_1h_input_tokens":?}`, max(0, c.Write-c.Write1h), c.Write1h)
	out.JSON(`"output_tokens":?,"output_tokens_details":{"thinking_tokens":?}`, c.Output, c.Reasoning)
	if searches > 0 {
		out.JSON(`"server_tool_use":{"web_search_requests":?,"web_fetch_requests":0}`, searches)
	} else {
		out.JSON(`"server_tool_use":null`)
	}
	out.JSON(`"inference_geo":null`)
	out.End()
}
