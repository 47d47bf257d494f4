package ark

import "modelrelay/providers"

// Priced is what the vendor bills beside tokens: what it caches of a chat is stored by the hour.
func Priced() providers.Priced {
	return providers.Priced{Members: []providers.PricedMember{
		{Name: "caching", Forbid: providers.ForbidCachedContent, Of: "type", Unless: `"disabled"`},
	}}
}
