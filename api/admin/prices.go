package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/providers/router"
)

const (
	// MostPriceList is the largest price list in bytes: the public ones have one to two MB.
	MostPriceList = 8 << 20
	// priceListTimeout is how long one may take to arrive.
	priceListTimeout = time.Minute
)

type adminPriceChange struct {
	Model  string      `json:"model"`
	Found  string      `json:"found" doc:"The list's name for it"`
	Change string      `json:"change" enum:"new,changed,same"`
	Before *ModelPrice `json:"before" doc:"null: it has no price"`
	After  *ModelPrice `json:"after" doc:"What the list says, and of the price that it has what the list says nothing of"`
}

// TransformSchema says that a model may have had no price.
func (adminPriceChange) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return orNull(s, "before")
}

type adminAmbiguous struct {
	Model string   `json:"model"`
	Found []string `json:"found" nullable:"false" doc:"Entries of the list that say different things"`
}

type adminPriceDraft struct {
	Object    string             `json:"object" enum:"price_draft"`
	YAML      string             `json:"yaml" doc:"What is new or changed, to be put into the configuration file's prices; empty: nothing is"`
	Data      []adminPriceChange `json:"data" nullable:"false" doc:"Models that the list has"`
	Ambiguous []adminAmbiguous   `json:"ambiguous" nullable:"false"`
	Missing   []string           `json:"missing" nullable:"false" doc:"Models that the list does not have"`
}

// priceOperations draft prices for the models of the catalogue.
type priceOperations struct {
	catalogue Catalogue
	prices    *pricing.List
}

// add adds the draft of prices.
func (o *priceOperations) add(g *edge.Group) {
	edge.Register(g, huma.Operation{
		OperationID: "adminDraftPrices", Method: http.MethodPost, Path: Root + "/prices/draft", Summary: "Draft prices from a public list",
		Description: "The body is models.dev's api.json, up to 8 MiB. Nothing is fetched and nothing is changed: the answer has YAML to put into the " +
			"configuration file, and what it differs in. Prices of tokens are read; the list's currency is taken for the file's.",
		MaxBodyBytes: MostPriceList, BodyReadTimeout: priceListTimeout,
	}, o.draft)
}

func (o *priceOperations) draft(_ context.Context, in *struct {
	Body json.RawMessage `doc:"The list"`
},
) (adminPriceDraft, error) {
	offers, err := pricing.ParseOffers(in.Body)
	if err != nil {
		return adminPriceDraft{}, &providers.Fault{Kind: providers.Invalid, Message: "Invalid request: this is not a price list that is read: " + pricing.ErrOffers.Error() + ".", Err: err}
	}
	draft := adminPriceDraft{Object: "price_draft", Data: []adminPriceChange{}, Ambiguous: []adminAmbiguous{}, Missing: []string{}}
	models, _ := o.catalogue.Catalogue()
	var yaml bytes.Buffer
	for _, model := range models {
		if model.Public != model.ID {
			continue // an alias costs what its model does
		}
		offer, found, others := find(offers, model)
		switch {
		case len(others) > 0:
			draft.Ambiguous = append(draft.Ambiguous, adminAmbiguous{model.ID, others})
		case !found:
			draft.Missing = append(draft.Missing, model.ID)
		default:
			change := o.change(model.ID, offer)
			draft.Data = append(draft.Data, change)
			if change.Change != "same" {
				writePrice(&yaml, model.ID, change.After)
			}
		}
	}
	if yaml.Len() > 0 {
		draft.YAML = "prices:\n" + yaml.String()
	}
	return draft, nil
}

// find looks for a model under the names that its channels' upstreams have for it, and then under its own.
func find(offers *pricing.Offers, model router.Listed) (offer pricing.Offer, found bool, others []string) {
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

// change is what an offer makes of a model's price.
func (o *priceOperations) change(model string, offer pricing.Offer) adminPriceChange {
	change := adminPriceChange{Model: model, Found: offer.Name, Change: "new", After: new(ModelPrice)}
	if price, ok := o.prices.Of(model); ok {
		change.Before, change.Change = newModelPrice(price), "same"
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
			change.Change = "changed"
		}
	}
	return change
}

// writePrice writes one entry of the configuration file's prices.
func writePrice(yaml *bytes.Buffer, model string, price *ModelPrice) {
	name, _ := json.Marshal(model) // a text can be written, and YAML reads what JSON writes
	parts := func(of ...string) string {
		var written []string
		for pair := range slices.Chunk(of, 2) {
			if name, value := pair[0], pair[1]; value != "" {
				written = append(written, name+": "+value)
			}
		}
		return strings.Join(written, ", ")
	}
	body := parts("input", string(price.Input), "cached_input", string(price.CachedInput), "output", string(price.Output), "request", string(price.Request),
		"image", string(price.Image), "audio_second", string(price.AudioSecond), "second", string(price.Second), "video", string(price.Video))
	var tiers []string
	for _, tier := range price.Tiers {
		tiers = append(tiers, "{"+parts("resolution", tier.Resolution, "audio", tier.Audio, "second", string(tier.Second), "video", string(tier.Video))+"}")
	}
	if len(tiers) > 0 {
		body = strings.Join(slices.DeleteFunc([]string{body, "tiers: [" + strings.Join(tiers, ", ") + "]"}, func(part string) bool { return part == "" }), ", ")
	}
	fmt.Fprintf(yaml, "  %s: {%s}\n", name, body)
}
