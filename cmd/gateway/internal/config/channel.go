package config

import (
	"maps"
	"slices"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/translate"
)

func checkChannel(v *validator, at string, c Channel, vendors providers.Catalog) {
	vendor, known := vendors[c.Vendor]
	if !known {
		v.oneOf(at+".vendor", c.Vendor, slices.Sorted(maps.Keys(vendors))...)
	}
	if c.BaseURL == "" && vendor.BaseURL != "" {
		// Without a base_url, the vendor's own address is used.
	} else if base, ok := v.httpURL(at+".base_url", c.BaseURL); ok && vendor.CheckBaseURL != nil {
		if err := vendor.CheckBaseURL(base); err != nil {
			v.add(at+".base_url", "%v", err)
		}
	}
	if len(c.Keys) == 0 {
		v.add(at+".keys", "must contain at least one key")
	}
	for i, secret := range c.Keys {
		switch {
		case secret == "":
			v.add(key(at+".keys", i), "is empty")
		case vendor.CheckKey != nil && vendor.CheckKey(secret) != nil:
			v.add(key(at+".keys", i), "%v", vendor.CheckKey(secret))
		case slices.Index(c.Keys, secret) < i:
			v.add(key(at+".keys", i), "is the same as keys[%d]", slices.Index(c.Keys, secret))
		}
	}
	if len(c.Models) == 0 {
		v.add(at+".models", `must contain at least one model; "*": allows every name`)
	}
	checkModels(v, at+".models", c.Models)
	checkDialect(v, at, c, vendor)
	checkRunner(v, at+".background", c, vendor)
	checkFields(v, at+".fields", c.Fields, vendor)
	if len(c.Groups) == 0 {
		v.add(at+".groups", "must contain at least one group")
	}
	v.allFilled(at+".groups", c.Groups)
}

func checkModels(v *validator, at string, models map[string]string) {
	for _, public := range slices.Sorted(maps.Keys(models)) {
		upstream := models[public]
		switch {
		case public == "":
			v.add(at, "a public name is empty")
		case public == providers.AnyModel && upstream != "":
			v.add(at+"."+public, `allows every name unchanged and does not accept an upstream name`)
		case strings.Count(public, "*") > 1:
			v.add(at+"."+public, "has more than one *")
		case strings.Count(upstream, "*") > strings.Count(public, "*"):
			v.add(at+"."+public, "its upstream name has a *, but the public name has none")
		}
	}
}

func checkAliases(v *validator, aliases map[string]string) {
	for _, asked := range slices.Sorted(maps.Keys(aliases)) {
		public := aliases[asked]
		switch _, chained := aliases[public]; {
		case asked == "" || public == "":
			v.add("aliases", "a name is empty")
		case providers.IsPattern(asked) || providers.IsPattern(public):
			v.add("aliases."+asked, "must not contain *; only the models of a channel accept it")
		case asked == public:
			v.add("aliases."+asked, "is an alias of itself")
		case chained:
			v.add("aliases."+asked, "is an alias of %q, which is also an alias", public)
		}
	}
}

func checkDialect(v *validator, at string, c Channel, vendor providers.Vendor) {
	if c.Dialect != providers.DialectBoth && vendor.Name != "" && !vendor.Dialects {
		v.add(at+".dialect", "is only for vendors that have both chat endpoints; %s does not", vendor.Name)
	}
	for _, model := range slices.Sorted(maps.Keys(c.Traits)) {
		for i, word := range c.Traits[model] {
			if err := translate.CheckTrait(word); err != nil {
				v.add(key(at+".traits."+model, i), "%v", err)
			}
		}
	}
}

func checkRunner(v *validator, at string, c Channel, vendor providers.Vendor) {
	if _, can := vendor.Relay.(providers.Ticketer); c.Background == BackgroundUpstream && vendor.Name != "" && !can {
		v.add(at, "is only for vendors that run calls in the background; %s does not", vendor.Name)
	}
}

func checkFields(v *validator, at string, models map[string]providers.VideoFields, vendor providers.Vendor) {
	if len(models) > 0 && vendor.Name != "" && !vendor.NamesFields {
		v.add(at, "is only for vendors that host many models; %s does not", vendor.Name)
		return
	}
	for _, model := range slices.Sorted(maps.Keys(models)) {
		for _, name := range slices.Sorted(maps.Keys(models[model])) {
			if err := models[model].Check(name); err != nil {
				v.add(at+"."+model+"."+name, "%v", err)
			}
		}
	}
}
