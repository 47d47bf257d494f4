package providers

import (
	"maps"
	"slices"
)

// The features of a call that change its cost and that a group may forbid.
const (
	// ForbidBackground is a response that the vendor computes in the background.
	ForbidBackground = "background"
	// ForbidServiceTier is a choice of the speed or price class.
	ForbidServiceTier = "service_tier"
	// ForbidHostedTools are tools that the vendor runs and bills by use.
	ForbidHostedTools = "hosted_tools"
	// ForbidInferenceGeo is a choice of the region, which may cost more.
	ForbidInferenceGeo = "inference_geo"
	// ForbidCachedContent is content that the vendor stores from earlier calls and may bill by the hour.
	ForbidCachedContent = "cached_content"
	// ForbidLongCache marks a part of the prompt that is cached for longer than usual, at a higher input price.
	ForbidLongCache = "long_cache"
	// ForbidLongContext is a beta of long prompts, in which all tokens cost more.
	ForbidLongContext = "long_context"
	// ForbidOtherModels is a choice of models or hosts other than the model that the call names and is priced by.
	ForbidOtherModels = "other_models"
)

// Forbiddable lists the features that a group may forbid.
func Forbiddable() []string {
	return []string{
		ForbidBackground, ForbidServiceTier, ForbidHostedTools, ForbidInferenceGeo, ForbidCachedContent, ForbidLongCache, ForbidLongContext,
		ForbidOtherModels,
	}
}

// Priced is what a vendor, and servers of its format, bill in addition to the tokens of the call's model.
type Priced struct {
	Members []PricedMember
	// Within are members whose object is read as if its members were the call's own, in lower case.
	Within []string
	// Marks keep parts of a prompt in a cache.
	Marks []PricedMark
	// Headers are headers of a call that increase its cost.
	Headers []PricedHeader
	// Tools are those that cost nothing but tokens. Any other tool counts as one that the vendor runs.
	Tools ClientTools
}

// ClientTools are the tools of a call that its client runs itself.
type ClientTools struct {
	// Types begin the types of such tools, which vendors date: bash_20250124.
	Types []string
	// Members, in lower case, declare them in a tool that has no type.
	Members []string
	// Arguments are members whose objects are the client's own: the arguments of its tools, and their schemas.
	Arguments []string
}

// PricedMember is a member of a call's JSON object. null and an empty array cost nothing.
type PricedMember struct {
	// Name is in lower case, because some upstreams ignore case.
	Name string
	// Forbid is the feature by which a group forbids it.
	Forbid string
	// Begins is the first byte of values that cost something: '"' of a text, '{' of an object, '[' of an array; 0: any.
	Begins byte
	// Of is the member of an object to which Only and Unless apply; "": the value itself.
	Of string
	// Only is the one value that costs something, Unless one that does not, in JSON; "": every value does.
	Only, Unless string
}

// PricedMark is a text in a member of objects anywhere in a call.
type PricedMark struct {
	// In is the name of the object, Name that of its member.
	In, Name string
	// Usual is the text that costs nothing extra.
	Usual string
}

// PricedHeader is a word in the comma-separated list of a header.
type PricedHeader struct {
	Name string
	// Begins is the prefix of words that cost extra, in lower case.
	Begins string
	Forbid string
}

// Priced returns the union of all vendors.
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
