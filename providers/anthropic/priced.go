package anthropic

import "modelrelay/providers"

// Priced returns what the vendor bills in addition to tokens: its pages "Pricing", "Service tiers", "Prompt caching" and "Data residency".
func Priced() providers.Priced {
	const usualCache = "5m" // a cache of an hour costs twice the price of input
	return providers.Priced{
		Tools: providers.ClientTools{
			Types:     []string{"custom", "computer", "bash", "text_editor", "str_replace_based_edit_tool", "memory"},
			Arguments: []string{"input", "input_schema"},
		},
		Members: []providers.PricedMember{
			{Name: "service_tier", Forbid: providers.ForbidServiceTier},
			{Name: "speed", Forbid: providers.ForbidServiceTier, Begins: '"', Unless: `"standard"`}, // for speech it is a number
			{Name: "inference_geo", Forbid: providers.ForbidInferenceGeo, Unless: `"global"`},
			{Name: "fallbacks", Forbid: providers.ForbidOtherModels, Begins: '['},
			{Name: "mcp_servers", Forbid: providers.ForbidHostedTools},
		},
		Marks: []providers.PricedMark{
			{In: "cache_control", Name: "ttl", Usual: usualCache},
			{In: "prompt_cache_breakpoint", Name: "ttl", Usual: usualCache},
		},
		Headers: []providers.PricedHeader{{Name: "anthropic-beta", Begins: "context-1m", Forbid: providers.ForbidLongContext}},
	}
}
