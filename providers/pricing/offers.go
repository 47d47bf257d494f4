package pricing

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// The public price lists that ParseOffers reads.
const (
	LiteLLM    = "litellm"
	ModelsDev  = "models.dev"
	OpenRouter = "openrouter"
)

// ErrOffers says that a text is none of the price lists that are read.
var ErrOffers = errors.New("want LiteLLM's model_prices_and_context_window.json, models.dev's api.json or OpenRouter's /api/v1/models")

// Offer is what a public list says that a model costs, in the list's currency. What it does not say is "".
type Offer struct {
	// Name is the model's in the list, with what stands before it there: openrouter/openai/gpt-4o.
	Name string
	// Input, Cached and Output are for a million tokens.
	Input, Cached, Output Decimal
	// Request is for a call, Image for an image made, AudioSecond for a second of audio heard, Second for one of video made.
	Request, Image, AudioSecond, Second Decimal
}

func (o Offer) empty() bool { return o == Offer{Name: o.Name} }

// Offers is a public price list.
type Offers struct {
	// Source is LiteLLM, ModelsDev or OpenRouter.
	Source string

	entries map[string]json.RawMessage // by name
	read    func(name string, raw json.RawMessage) (Offer, error)
	short   map[string][]string // names by what stands behind their last slash
}

// ParseOffers reads a price list. Its entries are read when they are looked for: one that is broken spoils no other.
func ParseOffers(raw []byte) (*Offers, error) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(raw, &top); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOffers, err)
	}
	o := &Offers{entries: make(map[string]json.RawMessage), short: make(map[string][]string)}
	switch {
	case startsWith(top["data"], '['):
		o.Source, o.read = OpenRouter, readOpenRouter
		var list []json.RawMessage
		if err := json.Unmarshal(top["data"], &list); err != nil {
			return nil, ErrOffers
		}
		for _, one := range list {
			var named struct {
				ID string `json:"id"`
			}
			if json.Unmarshal(one, &named) == nil && named.ID != "" {
				o.entries[named.ID] = one
			}
		}
	case isModelsDev(top):
		o.Source, o.read = ModelsDev, readModelsDev
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
	default:
		o.Source, o.read = LiteLLM, readLiteLLM
		for name, one := range top {
			if bytes.Contains(one, []byte(`_cost_per_`)) {
				o.entries[name] = one
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

// isModelsDev tells whether the entries are providers, each with models.
func isModelsDev(top map[string]json.RawMessage) bool {
	for _, raw := range top {
		var provider struct {
			Models json.RawMessage `json:"models"`
		}
		if json.Unmarshal(raw, &provider) == nil && startsWith(provider.Models, '{') {
			return true
		}
	}
	return false
}

func startsWith(raw json.RawMessage, c byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == c
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
	raw, ok := o.entries[name]
	if !ok {
		return Offer{}, false
	}
	offer, err := o.read(name, raw)
	return offer, err == nil && !offer.empty()
}

func readLiteLLM(name string, raw json.RawMessage) (Offer, error) {
	var e struct {
		Mode        string  `json:"mode"`
		Input       Decimal `json:"input_cost_per_token"`
		Cached      Decimal `json:"cache_read_input_token_cost"`
		Output      Decimal `json:"output_cost_per_token"`
		Request     Decimal `json:"input_cost_per_request"`
		ImageOut    Decimal `json:"output_cost_per_image"`
		ImageIn     Decimal `json:"input_cost_per_image"`
		SecondIn    Decimal `json:"input_cost_per_second"`
		SecondOut   Decimal `json:"output_cost_per_second"`
		VideoSecond Decimal `json:"output_cost_per_video_per_second"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return Offer{}, err
	}
	o := Offer{Name: name, Input: e.Input.times(1_000_000), Cached: e.Cached.times(1_000_000), Output: e.Output.times(1_000_000), Request: e.Request.times(1)}
	switch e.Mode {
	case "image_generation":
		o.Image = cmp.Or(e.ImageOut.times(1), e.ImageIn.times(1))
	case "video_generation":
		o.Second = cmp.Or(e.VideoSecond.times(1), e.SecondOut.times(1))
	case "audio_transcription":
		o.AudioSecond = e.SecondIn.times(1)
	}
	return o, nil
}

func readModelsDev(name string, raw json.RawMessage) (Offer, error) {
	var e struct {
		Cost struct {
			Input  Decimal `json:"input"`
			Cached Decimal `json:"cache_read"`
			Output Decimal `json:"output"`
		} `json:"cost"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return Offer{}, err
	}
	return Offer{Name: name, Input: e.Cost.Input.times(1), Cached: e.Cost.Cached.times(1), Output: e.Cost.Output.times(1)}, nil
}

func readOpenRouter(name string, raw json.RawMessage) (Offer, error) {
	var e struct {
		Pricing struct {
			Prompt     Decimal `json:"prompt"`
			Completion Decimal `json:"completion"`
			Cached     Decimal `json:"input_cache_read"`
			Request    Decimal `json:"request"`
		} `json:"pricing"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return Offer{}, err
	}
	p := e.Pricing
	o := Offer{Name: name, Input: p.Prompt.times(1_000_000), Cached: p.Cached.times(1_000_000), Output: p.Completion.times(1_000_000), Request: p.Request.times(1)}
	if o.Request == "0" {
		o.Request = ""
	}
	return o, nil
}

// times is the number so many times, as the file writes it; "" of "".
func (d Decimal) times(n int64) Decimal {
	if d == "" {
		return ""
	}
	amount, err := decimal(string(d))
	if err != nil {
		return ""
	}
	return shortest(amount.Mul(amount, big.NewRat(n, 1)))
}
