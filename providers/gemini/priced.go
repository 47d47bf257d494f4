package gemini

import "modelrelay/providers"

// Priced returns what the vendor bills in addition to tokens. In calls of OpenAI's format it reads its own members in extra_body.google.
func Priced() providers.Priced {
	return providers.Priced{
		Tools: providers.ClientTools{
			Members:   []string{"functiondeclarations", "function_declarations", "computeruse", "computer_use"},
			Arguments: []string{"args", "parameters", "parametersJsonSchema"},
		},
		Members: []providers.PricedMember{
			{Name: "servicetier", Forbid: providers.ForbidServiceTier},
			{Name: "cachedcontent", Forbid: providers.ForbidCachedContent},
			{Name: "cached_content", Forbid: providers.ForbidCachedContent},
		},
		Within: []string{"extra_body", "google"},
	}
}
