package pricing

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrOffers reports a text that is not the price list of models.dev.
var ErrOffers = errors.New("want models.dev's api.json")

// Offer is the price of a model on models.dev, in the list's currency. A missing price is "".
type Offer struct {
	// Name is the model's name in the list, with its provider: openai/gpt-4o.
	Name string
	// Input, Cached and Output are per million tokens.
	Input, Cached, Output Decimal
}

func (o Offer) empty() bool { return o == Offer{Name: o.Name} }

// Offers is models.dev's price list.
type Offers struct {
	entries map[string]Offer    // by provider and model
	short   map[string][]string // names by the part after their last slash
}

// ParseOffers reads models.dev's api.json. An invalid entry affects no other.
func ParseOffers(raw []byte) (*Offers, error) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(raw, &top); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOffers, err)
	}
	o := &Offers{entries: make(map[string]Offer), short: make(map[string][]string)}
	for provider, raw := range top {
		var of struct {
			Models map[string]json.RawMessage `json:"models"`
		}
		if json.Unmarshal(raw, &of) == nil {
			for model, raw := range of.Models {
				name := provider + "/" + model
				o.entries[name] = parseOffer(name, raw)
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

// Find looks up a model of a vendor under its names in order: the name itself, the vendor's entry of the name, any other entry that
// ends with it. If several entries disagree, it returns none of them and lists them in others.
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
	offer, ok := o.entries[name]
	return offer, ok && !offer.empty()
}

// parseOffer reads an entry; an invalid one is empty.
func parseOffer(name string, raw []byte) Offer {
	var e struct {
		Cost struct {
			Input  Decimal `json:"input"`
			Cached Decimal `json:"cache_read"`
			Output Decimal `json:"output"`
		} `json:"cost"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return Offer{Name: name}
	}
	return Offer{Name: name, Input: e.Cost.Input, Cached: e.Cost.Cached, Output: e.Cost.Output}
}
