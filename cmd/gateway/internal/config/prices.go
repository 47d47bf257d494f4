package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/pricing"
)

// PriceList returns the prices of models in the file.
func (c Config) PriceList() map[string]pricing.Price {
	list := make(map[string]pricing.Price, len(c.Prices))
	for model, price := range c.Prices {
		list[model], _ = price.list() // Validate refused invalid prices
	}
	return list
}

// amount is an amount of the file, with its key and its destination.
type amount struct {
	key  string
	text Amount
	per  int64
	into **pricing.Rate
}

// rates parses amounts, and returns their problems.
func rates(amounts ...amount) []Problem {
	var problems []Problem
	for _, a := range amounts {
		var err error
		if *a.into, err = a.text.rate(a.per); err != nil {
			problems = append(problems, Problem{Key: a.key, Message: err.Error()})
		}
	}
	return problems
}

// list returns the price for charging calls, and its problems.
func (p Price) list() (pricing.Price, []Problem) {
	var price pricing.Price
	unit := units()[p.Unit]
	if unit == 0 {
		unit = 1 // checkPrice reports an invalid unit
	}
	problems := rates(
		amount{"input", p.Input, unit, &price.Input},
		amount{"cached_input", p.CachedInput, unit, &price.Cached},
		amount{"output", p.Output, unit, &price.Output},
		amount{"request", p.Request, 1, &price.Request},
		amount{"image", p.Image, 1, &price.Image},
		amount{"audio_second", p.AudioSecond, 1, &price.AudioSecond},
		amount{"second", p.Second, 1, &price.VideoSecond},
		amount{"video", p.Video, 1, &price.Video},
	)
	for i, t := range p.Tiers {
		tier := pricing.Tier{Resolution: providers.ResolutionWord(t.Resolution, 0, 0), Sound: pricing.Sound(t.Audio)}
		at := key("tiers", i) + "."
		problems = append(problems, rates(amount{at + "second", t.Second, 1, &tier.Second}, amount{at + "video", t.Video, 1, &tier.Video})...)
		price.Tiers = append(price.Tiers, tier)
	}
	return price, problems
}

// maxTiers bounds the tiers of one price: each task scans them.
const maxTiers = 100

func checkPrice(v *validator, at string, p Price) {
	_, problems := p.list()
	for _, problem := range problems {
		v.add(at+"."+problem.Key, "%s", problem.Message)
	}
	if len(p.Tiers) > maxTiers {
		v.add(at+".tiers", "has more than %d entries", maxTiers)
	}
	for i, tier := range p.Tiers {
		at := key(at+".tiers", i)
		if strings.ContainsAny(tier.Resolution, "xX*") {
			v.add(at+".resolution", "must be a word such as 720p, named after the shorter side, not pixels")
		}
		if tier.Second == "" && tier.Video == "" {
			v.add(at, "requires second or video; 0 means free")
		}
	}
}

// warnPrices warns of models without a price, of tiers that never apply, and of videos that reserve nothing.
func warnPrices(v *validator, c Config, vendors providers.Catalog) {
	if len(c.Prices) > 0 {
		warnUnpriced(v, c)
	}
	for _, model := range slices.Sorted(maps.Keys(c.Prices)) {
		warnTiers(v, c, vendors, model)
	}
}

// warnUnpriced warns of models without a price that channels list by name.
func warnUnpriced(v *validator, c Config) {
	var free []string
	for _, channel := range c.Channels {
		for model := range channel.Models {
			if _, priced := c.Prices[model]; !priced && !channel.Disabled && !providers.IsPattern(model) {
				free = append(free, strconv.Quote(model))
			}
		}
	}
	slices.Sort(free)
	free = slices.Compact(free)
	if len(free) == 0 {
		return
	}
	list := strings.Join(free[:min(len(free), maxUnpriced)], ", ")
	if more := len(free) - maxUnpriced; more > 0 {
		list += fmt.Sprintf(" … (+%d)", more)
	}
	v.warn("prices", "unpriced", map[string]string{"models": list}, "has no price for %s: their calls cost nothing", list)
}

// warnTiers warns of tiers of a model's price that match no video.
func warnTiers(v *validator, c Config, vendors providers.Catalog, model string) {
	price, _ := c.Prices[model].list()
	tables, whole := c.videoTables(vendors, model)
	if slices.ContainsFunc(tables, providers.VideoModel.Describes) && // other models of these vendors may be chat models
		price.Output != nil && price.VideoSecond == nil && price.Video == nil && len(price.Tiers) == 0 {
		v.warn("prices."+model, "tokens_only", nil, "has output, but neither second nor video: a video reserves nothing of the budget, because its tokens are known only at its end")
	}
	for i, tier := range price.Tiers {
		at := key("prices."+model+".tiers", i)
		if first := slices.IndexFunc(price.Tiers[:i], func(before pricing.Tier) bool { return before.Covers(tier) }); first >= 0 {
			v.warn(at, "tier_behind", map[string]string{"first": key("tiers", first)}, "never applies: %s comes first and covers every such video",
				key("tiers", first))
			continue
		}
		makes := func(table providers.VideoModel) bool { return table.Makes(tier.Resolution, string(tier.Sound)) }
		if whole && !slices.ContainsFunc(tables, makes) {
			v.warn(at, "tier_unmade", nil, "never applies: no channel of the model makes such a video")
		}
	}
}

// videoTables returns the vendors' tables of a model that channels list by name. whole: there is at least one vendor, and all have a table.
func (c Config) videoTables(vendors providers.Catalog, model string) (tables []providers.VideoModel, whole bool) {
	whole = true
	for _, channel := range c.Channels {
		upstream, listed := channel.Models[model]
		for name := range channel.Models {
			listed = listed || providers.IsPattern(name) // a pattern may match it
		}
		vendor := vendors[channel.Vendor]
		if channel.Disabled || !listed || vendor.Video == nil {
			continue
		}
		if upstream == "" {
			upstream = model
		}
		var table providers.VideoModel
		known := false
		if _, exact := channel.Models[model]; exact && vendor.VideoModels != nil {
			table, known = vendor.VideoModels(upstream)
		}
		if !known {
			whole = false
			continue
		}
		tables = append(tables, table)
	}
	return tables, whole && len(tables) > 0
}

const maxUnpriced = 10
