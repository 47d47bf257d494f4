package operator

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/providers/router"
	"modelrelay/storage"
	"modelrelay/storage/ledger"
	"modelrelay/storage/taskindex"
)

// Durations returns the usual durations of jobs; taskindex.Durations implements it.
type Durations interface {
	UsualOf(ctx context.Context, of []taskindex.Timed) (map[taskindex.Timed]time.Duration, error)
}

const (
	// million is the number of tokens of a displayed price.
	million = 1_000_000
	// modelUseTTL is how long the sums of the models' usage are reused: a read scans every token's days.
	modelUseTTL = time.Minute
	// modelUseTimeout bounds such a read.
	modelUseTimeout = 10 * time.Second
	// mostChannels is the maximum number of channels of a model in the list.
	mostChannels = 20
	// mostNamed is the maximum number of open channels, and of models without a price, in a list.
	mostNamed = 100
)

// ModelPrice is the price of a model. A part that is null costs nothing.
type ModelPrice struct {
	Input       pricing.Decimal  `json:"input" doc:"For a million input tokens"`
	CachedInput pricing.Decimal  `json:"cached_input" doc:"For a million cached input tokens; null: the same as input"`
	Output      pricing.Decimal  `json:"output" doc:"For a million output tokens"`
	Request     pricing.Decimal  `json:"request" doc:"For a call or task"`
	Image       pricing.Decimal  `json:"image" doc:"For an image made"`
	AudioSecond pricing.Decimal  `json:"audio_second" doc:"For a second of audio"`
	Second      pricing.Decimal  `json:"second" doc:"For a second of video, if no tier matches"`
	Video       pricing.Decimal  `json:"video" doc:"For a video, if no tier matches"`
	Tiers       []ModelPriceTier `json:"tiers,omitempty" doc:"The first tier that matches replaces second and video"`
}

// ModelPriceTier is the price of videos of one kind.
type ModelPriceTier struct {
	Resolution string          `json:"resolution,omitempty" doc:"Absent: every resolution"`
	Audio      string          `json:"audio,omitempty" enum:"true,false" doc:"Absent: with and without sound"`
	Second     pricing.Decimal `json:"second"`
	Video      pricing.Decimal `json:"video"`
}

// PricePart is a part of a price that costs something.
type PricePart struct {
	// Name is the JSON name.
	Name   string
	Amount pricing.Decimal
}

// Parts lists the parts of the price that cost something, without the tiers.
func (p *ModelPrice) Parts() []PricePart {
	return slices.DeleteFunc([]PricePart{
		{"input", p.Input},
		{"cached_input", p.CachedInput},
		{"output", p.Output},
		{"request", p.Request},
		{"image", p.Image},
		{"audio_second", p.AudioSecond},
		{"second", p.Second},
		{"video", p.Video},
	}, func(part PricePart) bool { return part.Amount == "" })
}

func newModelPrice(p pricing.Price) *ModelPrice {
	shown := &ModelPrice{
		Input: p.Input.Per(million), CachedInput: p.Cached.Per(million), Output: p.Output.Per(million), Request: p.Request.Per(1),
		Image: p.Image.Per(1), AudioSecond: p.AudioSecond.Per(1), Second: p.VideoSecond.Per(1), Video: p.Video.Per(1),
	}
	for _, tier := range p.Tiers {
		shown.Tiers = append(shown.Tiers, ModelPriceTier{tier.Resolution, string(tier.Sound), tier.Second.Per(1), tier.Video.Per(1)})
	}
	return shown
}

// ModelChannel is a channel that serves a model.
type ModelChannel struct {
	router.ListedChannel
	State        string   `json:"state,omitempty" enum:"closed,half-open,open,paused,disabled" doc:"closed: the channel serves the model; absent: unknown at the moment"`
	UsualSeconds *float64 `json:"usual_seconds,omitempty" doc:"How long a video job of the model usually takes there; absent: there is not enough data"`
}

// ModelUse is the usage of a model.
type ModelUse struct {
	Requests int64         `json:"requests"`
	Tasks    int64         `json:"tasks"`
	Failed   int64         `json:"failed"`
	Cost     pricing.Money `json:"cost" doc:"In the currency of the prices"`
}

// Model is a model for operators.
type Model struct {
	ID           string                `json:"id" doc:"The model name that clients use"`
	AliasOf      string                `json:"alias_of,omitempty" doc:"The public name of this alias; absent: the name is not an alias"`
	Formats      []string              `json:"formats" nullable:"false" doc:"Formats and operations that can call the model, such as openai.chat; video: tasks"`
	Groups       []string              `json:"groups" nullable:"false" doc:"Groups whose tokens may call it"`
	Channels     []ModelChannel        `json:"channels" nullable:"false" doc:"Channels of the model, in the order of attempts; a list has the first 20"`
	MoreChannels int                   `json:"more_channels,omitempty" doc:"Number of channels that the list omits"`
	Price        *ModelPrice           `json:"price" doc:"null: the model has no price and costs nothing"`
	Video        *providers.VideoTable `json:"video,omitempty" doc:"For a model that makes videos: its capabilities in the vendor's table"`
	LastMonth    *ModelUse             `json:"last_30_days,omitempty" doc:"Absent: not used, or unknown at the moment"`
}

// TransformSchema declares that the price of a model may be null.
func (Model) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return body.Nullable(s, "price")
}

// UnpricedModel is a model that was used and has no price.
type UnpricedModel struct {
	Model string `json:"model"`
	ModelUse
}

// ModelList is a page of models.
type ModelList struct {
	Object   string          `json:"object" enum:"list"`
	Data     []Model         `json:"data" nullable:"false"`
	HasMore  bool            `json:"has_more" doc:"There is a next page"`
	After    *string         `json:"after" doc:"Value of after for the next page; null at the end"`
	Open     []string        `json:"open" nullable:"false" doc:"Channels that also accept model names by patterns, the first 100 by name"`
	Unpriced []UnpricedModel `json:"unpriced" nullable:"false" doc:"Models that were used within the last 30 days and have no price, the 100 most used first"`
	UsedAt   *time.Time      `json:"used_at" doc:"When the uses were summed, at most a minute ago; null: unknown at the moment"`
}

// ModelName identifies one model.
type ModelName struct {
	Name string `path:"name" doc:"The model name that clients use"`
}

// modelUses has sums of the ledger by model. All callers share them for modelUseTTL.
type modelUses struct {
	mu sync.Mutex
	at time.Time
	// sums are those of the models, the most used first, and of has them by name.
	sums []ledger.Row
	of   map[string]ledger.Row
}

// readUses returns the sums of the last 30 days. It reads the ledger if they are older than modelUseTTL.
func (s *Service) readUses(ctx context.Context) (sums []ledger.Row, of map[string]ledger.Row, at time.Time, err error) {
	u := &s.uses
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now().UTC()
	if now.Sub(u.at) >= modelUseTTL {
		ctx, cancel := context.WithTimeout(ctx, modelUseTimeout)
		defer cancel()
		sums, _, err := s.Ledger.Sums(ctx, ledger.Query{From: now.AddDate(0, 0, 1-usageDays), To: now, By: []string{ledger.ByModel}})
		if err != nil {
			return nil, nil, time.Time{}, err
		}
		u.sums, u.of, u.at = sums, make(map[string]ledger.Row, len(sums)), now
		slices.SortStableFunc(u.sums, func(a, b ledger.Row) int { return cmp.Compare(b.Requests+b.Tasks, a.Requests+a.Tasks) })
		for _, sum := range u.sums {
			u.of[sum.Model] = sum
		}
	}
	return u.sums, u.of, u.at, nil
}

func newModelUse(sum ledger.Row) ModelUse {
	return ModelUse{sum.Requests, sum.Tasks, sum.Failed, pricing.Money(sum.Cost)}
}

// ListModels returns a page of models by name.
func (s *Service) ListModels(ctx context.Context, by Actor, in *NamesOf) (list ModelList, err error) {
	if err := reads(by, in); err != nil {
		return list, err
	}
	names, next, err := in.Page(s.Router.ModelNames())
	if err != nil {
		return list, err
	}
	open := s.Router.OpenChannels()
	sums, uses, at, unread := s.readUses(ctx)
	list = ModelList{
		Object: "list", Data: s.describe(ctx, mostChannels, uses, names), HasMore: next != nil, After: next,
		Open: orNone(open[:min(len(open), mostNamed)]), Unpriced: []UnpricedModel{},
	}
	if unread == nil {
		list.UsedAt = &at
	}
	for _, sum := range sums {
		if _, priced := s.Prices.Of(sum.Model); !priced && sum.Model != "" && len(list.Unpriced) < mostNamed {
			list.Unpriced = append(list.Unpriced, UnpricedModel{sum.Model, newModelUse(sum)})
		}
	}
	return list, nil
}

// Model returns a model, with all channels that serve it.
func (s *Service) Model(ctx context.Context, by Actor, in *ModelName) (Model, error) {
	if err := reads(by, nil); err != nil {
		return Model{}, err
	}
	_, uses, _, _ := s.readUses(ctx) // unknown uses are absent
	models := s.describe(ctx, 0, uses, []string{in.Name})
	if len(models) == 0 {
		return Model{}, StoreFault("model", in.Name, storage.ErrNotFound)
	}
	return models[0], nil
}

// describe returns the models with the names, with at most channels channels of each; 0: all. Unknown states and durations are absent.
func (s *Service) describe(ctx context.Context, channels int, uses map[string]ledger.Row, names []string) []Model {
	models := make([]Model, 0, len(names))
	var timed []taskindex.Timed
	serving := make(map[string]bool)
	for _, name := range names {
		listed, known := s.Router.Listed(name)
		if !known { // the configuration changed
			continue
		}
		more := 0
		if channels > 0 && len(listed.Channels) > channels {
			more, listed.Channels = len(listed.Channels)-channels, listed.Channels[:channels]
		}
		model := s.describeModel(listed)
		model.MoreChannels = more
		models = append(models, model)
		video := slices.Contains(listed.Endpoints, providers.Endpoint{Operation: providers.VideoTask})
		for _, channel := range listed.Channels {
			serving[channel.Name] = true
			if video {
				timed = append(timed, taskindex.Timed{Channel: channel.Name, Model: listed.Public})
			}
		}
	}
	states := s.statesOf(ctx, serving)
	usual, _ := s.Durations.UsualOf(ctx, timed) // unknown durations are absent
	for i := range models {
		model := &models[i]
		if use, used := uses[model.ID]; used {
			model.LastMonth = new(newModelUse(use))
		}
		for c := range model.Channels {
			channel := &model.Channels[c]
			channel.State = states[channel.Name]
			if took, known := usual[taskindex.Timed{Channel: channel.Name, Model: cmp.Or(model.AliasOf, model.ID)}]; known {
				channel.UsualSeconds = new(took.Seconds())
			}
		}
	}
	return models
}

// statesOf returns the states of channels by name; none if they cannot be read.
func (s *Service) statesOf(ctx context.Context, channels map[string]bool) map[string]string {
	found, err := s.Channels.States(ctx, slices.Sorted(maps.Keys(channels)))
	if err != nil {
		return nil
	}
	states := make(map[string]string, len(found))
	for _, state := range found {
		states[state.Name] = state.State
	}
	return states
}

func (s *Service) describeModel(listed router.Listed) Model {
	model := Model{ID: listed.ID, Formats: []string{}, Groups: orNone(listed.Groups), Channels: []ModelChannel{}}
	if listed.Public != listed.ID {
		model.AliasOf = listed.Public
	}
	for _, endpoint := range listed.Endpoints {
		model.Formats = append(model.Formats, strings.TrimPrefix(endpoint.String(), ".")) // the endpoint of tasks has no format
	}
	for _, channel := range listed.Channels {
		channel.Groups = orNone(channel.Groups)
		model.Channels = append(model.Channels, ModelChannel{ListedChannel: channel})
	}
	if price, ok := s.Prices.Of(listed.Public); ok {
		model.Price = newModelPrice(price)
	}
	if listed.Video != nil {
		model.Video = new(listed.Video.Table())
	}
	return model
}
