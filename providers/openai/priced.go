package openai

import "modelrelay/providers"

// Priced returns what OpenAI and compatible servers bill in addition to tokens.
func Priced() providers.Priced {
	hosted, others := providers.ForbidHostedTools, providers.ForbidOtherModels
	tools := providers.ClientTools{
		Types: []string{"function", "custom", "local_shell", "apply_patch", "computer"}, Arguments: []string{"parameters"},
	}
	return providers.Priced{Tools: tools, Members: []providers.PricedMember{
		{Name: "background", Forbid: providers.ForbidBackground, Only: "true"}, // a picture's background is a text
		{Name: "service_tier", Forbid: providers.ForbidServiceTier},
		{Name: "web_search_options", Forbid: hosted},
		{Name: "prompt", Forbid: hosted, Begins: '{'}, // one that the vendor stores, with its own tools
		// OpenRouter: the answering model is billed at its own price
		{Name: "models", Forbid: others, Begins: '['},
		{Name: "provider", Forbid: others, Begins: '{'},        // gateways: the host of the model and its price
		{Name: "provideroptions", Forbid: others, Begins: '{'}, // the same
		// OpenRouter: a stored configuration, which includes a model
		{Name: "preset", Forbid: others, Begins: '"'},
		{Name: "plugins", Forbid: hosted},                                                // OpenRouter, MiniMax
		{Name: "data_sources", Forbid: hosted},                                           // Azure
		{Name: "compound_custom", Forbid: hosted},                                        // Groq
		{Name: "search_parameters", Forbid: hosted, Of: "mode", Unless: `"off"`},         // xAI
		{Name: "enable_search", Forbid: hosted, Unless: "false"},                         // Qwen
		{Name: "enable_code_interpreter", Forbid: hosted, Unless: "false"},               // Qwen
		{Name: "enable_enhancement", Forbid: hosted, Unless: "false"},                    // Hunyuan
		{Name: "force_search_enhancement", Forbid: hosted, Unless: "false"},              // Hunyuan
		{Name: "web_search", Forbid: hosted, Begins: '{', Of: "enable", Unless: "false"}, // Qianfan
		{Name: "connectors", Forbid: hosted, Begins: '['},                                // Cohere
	}}
}
