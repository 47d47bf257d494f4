package providers

import (
	"maps"
	"slices"
)

// What a group may forbid its tokens: members of a call that change what it costs.
const (
	// ForbidBackground is a response that the vendor works on behind its answer.
	ForbidBackground = "background"
	// ForbidServiceTier is a choice of how soon, or how dear, a call is answered.
	ForbidServiceTier = "service_tier"
	// ForbidHostedTools are tools that the vendor runs, and bills by their use.
	ForbidHostedTools = "hosted_tools"
	// ForbidInferenceGeo is a choice of where a call is worked on, which may be billed higher than anywhere.
	ForbidInferenceGeo = "inference_geo"
	// ForbidCachedContent is what a vendor keeps of earlier calls, whose storage it may bill by the hour.
	ForbidCachedContent = "cached_content"
	// ForbidLongCache is a mark whose part of the prompt is kept for longer than usual, at a higher price of input.
	ForbidLongCache = "long_cache"
	// ForbidLongContext is a beta of long prompts, all of whose tokens cost more.
	ForbidLongContext = "long_context"
	// ForbidOtherModels is a choice of models, or of their hosts, beside the one that the call names and is priced by.
	ForbidOtherModels = "other_models"
)

// Forbiddable lists what a group may forbid.
func Forbiddable() []string {
	return []string{
		ForbidBackground, ForbidServiceTier, ForbidHostedTools, ForbidInferenceGeo, ForbidCachedContent, ForbidLongCache, ForbidLongContext,
		ForbidOtherModels,
	}
}

// Priced is what a vendor, and the servers that speak its format, bill beside the tokens of the model that a call names.
type Priced struct {
	Members []PricedMember
	// Within are members whose object is read as if its members were the call's own, in lower case.
	Within []string
	// Marks keep parts of a prompt in a cache.
	Marks []PricedMark
	// Headers are those of a call by which it costs more.
	Headers []PricedHeader
	// Tools are those that cost nothing beside tokens. Any other tool counts as one that the vendor runs.
	Tools ClientTools
}

// ClientTools are the tools of a call that its client runs itself.
type ClientTools struct {
	// Types begin the types of such tools, which vendors date: bash_20250124.
	Types []string
	// Members, in lower case, declare them in a tool that has no type.
	Members []string
	// Arguments are members whose objects are the client's own: what its tools are called with, and the schemas of that.
	Arguments []string
}

// PricedMember is a member of a call's JSON object. null and an empty array never cost anything.
type PricedMember struct {
	// Name is in lower case: upstreams differ in whether a name in another case is the same name.
	Name string
	// Forbid is the word by which a group forbids it.
	Forbid string
	// Begins is the first byte of the values that cost something: '"' of a text, '{' of an object, '[' of an array; 0: any.
	Begins byte
	// Of names the member of an object whose value Only and Unless are about; "": the value itself.
	Of string
	// Only is the one value that costs something, and Unless one that does not, in JSON; "": each does.
	Only, Unless string
}

// PricedMark is a text in a member of objects anywhere in a call.
type PricedMark struct {
	// In names the object, and Name its member.
	In, Name string
	// Usual is the text that costs no more.
	Usual string
}

// PricedHeader is a word in a list.
type PricedHeader struct {
	Name string
	// Begins begins the words that cost more, in lower case.
	Begins string
	Forbid string
}

// Priced is that of all vendors together.
func (c Catalog) Priced() Priced {
	var all Priced
	for _, name := range slices.Sorted(maps.Keys(c)) {
		one := c[name].Priced
		all.Members, all.Within = append(all.Members, one.Members...), append(all.Within, one.Within...)
		all.Marks, all.Headers = append(all.Marks, one.Marks...), append(all.Headers, one.Headers...)
		all.Tools.Types, all.Tools.Members = append(all.Tools.Types, one.Tools.Types...), append(all.Tools.Members, one.Tools.Members...)
		all.Tools.Arguments = append(all.Tools.Arguments, one.Tools.Arguments...)
	}
	return all
}
