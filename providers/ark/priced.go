package ark

import "modelrelay/providers"

// Priced returns what the vendor bills in addition to tokens: the cache of a chat is billed by the hour.
func Priced() providers.Priced {
	return providers.Priced{Members: []providers.PricedMember{
		{Name: "caching", Forbid: providers.ForbidCachedContent, Of: "type", Unless: `"disabled"`},
	}}
}
