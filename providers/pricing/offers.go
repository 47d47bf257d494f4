package pricing

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrOffers reports that a text is not models.dev's price list.
var ErrOffers = errors.New("want models.dev's api.json")

// Offer is what models.dev lists as the price of a model, in the list's currency. What it does not list is "".
type Offer struct {
	// Name is the model's in the list, after its provider: openai/gpt-4o.
	Name string
	// Input, Cached and Output are for a million tokens.
	Input, Cached, Output Decimal
}

func (o Offer) empty() bool { return o == Offer{Name: o.Name} }

// Offers is models.dev's price list.
type Offers struct {
	entries map[string]json.RawMessage // by provider and model
	short   map[string][]string        // names by what follows their last slash
}

// ParseOffers reads models.dev's api.json. Its entries are read when they are looked up: a broken one spoils no other.
func ParseOffers(raw []byte) (*Offers, error) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(raw, &top); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOffers, err)
	}
	o := &Offers{entries: make(map[string]json.RawMessage), short: make(map[string][]string)}
	for provider, raw := range top {
		var of struct {
			Models map[string]json.RawMessage `json:"models"`
		}
		if json.Unmarshal(raw, &of) == nil {
			for model, one := range of.Models {
				o.entries[provider+"/"+model] = one
			}
		}
	}
	if len(o.entries) == 0 {
		return nil, ErrOffers
	}
	for _, name := range slices.Sorted(maps.Keys(o.entries)) {
		last := name[strings.LastIndexByte(name, '/')+1:]
		o.short[last] = append(o.short[last], name)
	}
	return o, nil
}

// Find looks for a model of a vendor under its names, in their order: the name itself, the vendor's of the name, any other
// entry that ends with it. Several that do not agree are none: others names them.
func (o *Offers) Find(vendor string, names ...string) (offer Offer, found bool, others []string) {
	for _, name := range names {
		if offer, ok := o.offer(name); ok {
			return offer, true, nil
		}
		if offer, ok := o.offer(vendor + "/" + name); ok {
			return offer, true, nil
		}
	}
	for _, name := range names {
		var offers []Offer
		for _, entry := range o.short[name[strings.LastIndexByte(name, '/')+1:]] {
			if offer, ok := o.offer(entry); ok {
				offers = append(offers, offer)
			}
		}
		if len(offers) == 0 {
			continue
		}
		for _, offer := range offers[1:] {
			offer.Name = offers[0].Name
			if offer != offers[0] {
				others = nil
				for _, one := range offers {
					others = append(others, one.Name)
				}
				return Offer{}, false, others
			}
		}
		return offers[0], true, nil
	}
	return Offer{}, false, nil
}

func (o *Offers) offer(name string) (Offer, bool) {
	var e struct {
		Cost struct {
			Input  Decimal `json:"input"`
			Cached Decimal `json:"cache_read"`
			Output Decimal `json:"output"`
		} `json:"cost"`
	}
	raw, ok := o.entries[name]
	if !ok || json.Unmarshal(raw, &e) != nil {
		return Offer{}, false
	}
	offer := Offer{Name: name, Input: e.Cost.Input.shortest(), Cached: e.Cost.Cached.shortest(), Output: e.Cost.Output.shortest()}
	return offer, !offer.empty()
}

// shortest is the number as the file writes it; "" of "" and of what is no price.
func (d Decimal) shortest() Decimal {
	if d == "" {
		return ""
	}
	amount, err := decimal(string(d))
	if err != nil {
		return ""
	}
	return shortest(amount)
}
