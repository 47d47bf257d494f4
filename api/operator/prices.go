package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/providers/router"
	"modelrelay/storage/audit"
)

// MostPriceList is the maximum size of a price list in bytes: the public ones have one to two MB.
const MostPriceList = 8 << 20

// The changes of a price.
const (
	PriceNew     = "new"
	PriceChanged = "changed"
	PriceSame    = "same"
)

// PriceChange is the change of a model's price by a public list.
type PriceChange struct {
	Model  string      `json:"model"`
	Found  string      `json:"found" doc:"The name of the model in the list"`
	Change string      `json:"change" enum:"new,changed,same"`
	Before *ModelPrice `json:"before" doc:"null: it has no price"`
	After  *ModelPrice `json:"after" doc:"The prices of the list, and the current prices that the list does not contain"`
}

// TransformSchema declares that the earlier price may be null.
func (PriceChange) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return body.Nullable(s, "before")
}

// AmbiguousPrice is a model for which the list has several prices.
type AmbiguousPrice struct {
	Model string   `json:"model"`
	Found []string `json:"found" nullable:"false" doc:"Entries of the list that contradict each other"`
}

// PriceDraft has the changes of the prices by a public list.
type PriceDraft struct {
	Object    string           `json:"object" enum:"price_draft"`
	YAML      string           `json:"yaml" doc:"New and changed prices for the configuration file; empty: there are none"`
	Data      []PriceChange    `json:"data" nullable:"false" doc:"Models that the list has"`
	Ambiguous []AmbiguousPrice `json:"ambiguous" nullable:"false"`
	Missing   []string         `json:"missing" nullable:"false" doc:"Models that the list does not have"`
}

// PriceOffers is the input of Service.DraftPrices.
type PriceOffers struct {
	Body json.RawMessage `doc:"The list"`
}

// DraftPrices drafts the prices of all models from a public list. It changes nothing.
func (s *Service) DraftPrices(ctx context.Context, by Actor, in *PriceOffers) (PriceDraft, error) {
	return change(ctx, s, by, "draft_prices", "", nil, func(*audit.Entry) (PriceDraft, error) { return s.draftPrices(in.Body) })
}

func (s *Service) draftPrices(list []byte) (PriceDraft, error) {
	offers, err := pricing.ParseOffers(list)
	if err != nil {
		message := "Invalid request: this is not a price list that is read: " + pricing.ErrOffers.Error() + "."
		return PriceDraft{}, &providers.Fault{Kind: providers.Invalid, Message: message, Err: err}
	}
	draft := PriceDraft{Object: "price_draft", Data: []PriceChange{}, Ambiguous: []AmbiguousPrice{}, Missing: []string{}}
	var yaml bytes.Buffer
	for _, name := range s.Router.ModelNames() {
		model, known := s.Router.Listed(name)
		if !known || model.Public != model.ID {
			continue // an alias has the price of its model
		}
		offer, found, others := findOffer(offers, model)
		switch {
		case len(others) > 0:
			draft.Ambiguous = append(draft.Ambiguous, AmbiguousPrice{model.ID, others})
		case !found:
			draft.Missing = append(draft.Missing, model.ID)
		default:
			change := s.priceChange(model.ID, offer)
			draft.Data = append(draft.Data, change)
			if change.Change != PriceSame {
				writePrice(&yaml, model.ID, change.After)
			}
		}
	}
	if yaml.Len() > 0 {
		draft.YAML = "prices:\n" + yaml.String()
	}
	return draft, nil
}

// findOffer finds a model in a list: first by the upstream names of its channels, then by its own name.
func findOffer(offers *pricing.Offers, model router.Listed) (offer pricing.Offer, found bool, others []string) {
	for _, channel := range model.Channels {
		var also []string
		if offer, found, also = offers.Find(channel.Vendor, channel.Upstream); found {
			return offer, true, nil
		}
		if others == nil {
			others = also
		}
	}
	if others != nil {
		return offer, false, others
	}
	return offers.Find(model.Vendor, model.ID)
}

func (s *Service) priceChange(model string, offer pricing.Offer) PriceChange {
	change := PriceChange{Model: model, Found: offer.Name, Change: PriceNew, After: new(ModelPrice)}
	if price, ok := s.Prices.Of(model); ok {
		change.Before, change.Change = newModelPrice(price), PriceSame
		*change.After = *change.Before
	}
	for _, part := range []struct {
		into *pricing.Decimal
		from pricing.Decimal
	}{
		{&change.After.Input, offer.Input},
		{&change.After.CachedInput, offer.Cached},
		{&change.After.Output, offer.Output},
	} {
		if part.from == "" || part.from == *part.into {
			continue
		}
		*part.into = part.from
		if change.Before != nil {
			change.Change = PriceChanged
		}
	}
	return change
}

func writePrice(yaml *bytes.Buffer, model string, price *ModelPrice) {
	name, _ := json.Marshal(model) // a string always marshals, and YAML includes JSON
	list := func(parts []PricePart) (written []string) {
		for _, part := range parts {
			if part.Amount != "" {
				written = append(written, part.Name+": "+string(part.Amount))
			}
		}
		return written
	}
	body := list(price.Parts())
	var tiers []string
	for _, tier := range price.Tiers {
		parts := []PricePart{
			{"resolution", pricing.Decimal(tier.Resolution)}, {"audio", pricing.Decimal(tier.Audio)}, {"second", tier.Second}, {"video", tier.Video},
		}
		tiers = append(tiers, "{"+strings.Join(list(parts), ", ")+"}")
	}
	if len(tiers) > 0 {
		body = append(body, "tiers: ["+strings.Join(tiers, ", ")+"]")
	}
	fmt.Fprintf(yaml, "  %s: {%s}\n", name, strings.Join(body, ", "))
}
