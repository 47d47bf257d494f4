package admin

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/providers/router"
	"modelrelay/storage/ledger"
	"modelrelay/storage/taskindex"
)

// Catalogue lists the models that channels list, and the channels that take names beside, as router.Router does.
type Catalogue interface {
	Catalogue() (models []router.Listed, open []string)
}

// Durations tells how long jobs usually take, as taskindex.Durations does.
type Durations interface {
	UsualOf(ctx context.Context, of []taskindex.Timed) (map[taskindex.Timed]time.Duration, error)
}

const (
	// million is the number of tokens that prices are shown for.
	million = 1_000_000
	// usageDays is how many days the uses of models are summed over, today among them.
	usageDays = 30
	// modelUseFor is how long the sums of what models were used for serve all who ask: they read every token's days.
	modelUseFor = time.Minute
	// modelUseTimeout bounds the reading of them.
	modelUseTimeout = 10 * time.Second
)

// ModelPrice is what a model costs. A part that is null is not charged.
type ModelPrice struct {
	Input       pricing.Decimal  `json:"input" doc:"For a million input tokens"`
	CachedInput pricing.Decimal  `json:"cached_input" doc:"For a million cached ones; null: what input says"`
	Output      pricing.Decimal  `json:"output" doc:"For a million output tokens"`
	Request     pricing.Decimal  `json:"request" doc:"For a call or task"`
	Image       pricing.Decimal  `json:"image" doc:"For an image made"`
	AudioSecond pricing.Decimal  `json:"audio_second" doc:"For a second of audio"`
	Second      pricing.Decimal  `json:"second" doc:"For a second of video, where no tier fits"`
	Video       pricing.Decimal  `json:"video" doc:"For a video, where no tier fits"`
	Tiers       []ModelPriceTier `json:"tiers,omitempty" doc:"The first that fits counts in place of second and video"`
}

// ModelPriceTier is what videos of one kind cost.
type ModelPriceTier struct {
	Resolution string          `json:"resolution,omitempty" doc:"Absent: every one"`
	Audio      string          `json:"audio,omitempty" enum:"true,false" doc:"Absent: with and without sound"`
	Second     pricing.Decimal `json:"second"`
	Video      pricing.Decimal `json:"video"`
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

type adminModelChannel struct {
	Name         string   `json:"name"`
	Vendor       string   `json:"vendor"`
	Upstream     string   `json:"upstream" doc:"The model's name there"`
	Groups       []string `json:"groups" nullable:"false"`
	Priority     int      `json:"priority"`
	Weight       int      `json:"weight"`
	State        string   `json:"state,omitempty" enum:"closed,half-open,open,disabled" doc:"closed: it serves; absent: not known now"`
	UsualSeconds *float64 `json:"usual_seconds,omitempty" doc:"How long a video job of the model usually takes there; absent: too few are known"`
}

type adminModelUse struct {
	Requests int64         `json:"requests"`
	Tasks    int64         `json:"tasks"`
	Failed   int64         `json:"failed"`
	Cost     pricing.Money `json:"cost" doc:"In units of the prices"`
}

type adminModel struct {
	ID        string                `json:"id" doc:"The name that clients ask for"`
	AliasOf   string                `json:"alias_of,omitempty" doc:"The public name that it stands for; absent: it is one"`
	Formats   []string              `json:"formats" nullable:"false" doc:"Formats and operations that reach it, such as openai.chat; video: tasks"`
	Groups    []string              `json:"groups" nullable:"false" doc:"Groups whose tokens may call it"`
	Channels  []adminModelChannel   `json:"channels" nullable:"false" doc:"What serves it, in the order in which they are tried"`
	Price     *ModelPrice           `json:"price" doc:"null: none, and it costs nothing"`
	Video     *providers.VideoTable `json:"video,omitempty" doc:"What its vendor's table says of a model that makes videos"`
	LastMonth *adminModelUse        `json:"last_30_days,omitempty" doc:"Absent: not used, or not known now"`
}

// TransformSchema says that a model may have no price.
func (adminModel) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return orNull(s, "price")
}

// orNone is a list that JSON never has as null.
func orNone[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// orNull lets properties of an object, which are objects themselves, be null as well.
func orNull(s *huma.Schema, properties ...string) *huma.Schema {
	for _, name := range properties {
		whole := s.Properties[name]
		s.Properties[name] = &huma.Schema{Description: whole.Description, AnyOf: []*huma.Schema{{Ref: whole.Ref}, {Type: "null"}}}
	}
	return s
}

type adminUnpriced struct {
	Model string `json:"model"`
	adminModelUse
}

type adminModelList struct {
	Object   string          `json:"object" enum:"list"`
	Data     []adminModel    `json:"data" nullable:"false"`
	Open     []string        `json:"open" nullable:"false" doc:"Channels that take names beside, by patterns"`
	Unpriced []adminUnpriced `json:"unpriced" nullable:"false" doc:"Models that were used within the last 30 days and have no price, the most used first"`
	UsedAt   *time.Time      `json:"used_at" doc:"When the uses were summed, at most a minute ago; null: they are not known now"`
}

// modelUses are sums of the ledger by model, shared by all who ask within a minute.
type modelUses struct {
	mu   sync.Mutex
	at   time.Time
	sums []ledger.Row
}

// of reads the sums of the last 30 days unless they are fresh.
func (u *modelUses) of(ctx context.Context, usage operator.UsageReader) ([]ledger.Row, time.Time, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now().UTC()
	if now.Sub(u.at) < modelUseFor {
		return u.sums, u.at, nil
	}
	ctx, cancel := context.WithTimeout(ctx, modelUseTimeout)
	defer cancel()
	rows, err := usage.Read(ctx, now.AddDate(0, 0, 1-usageDays), now, "")
	if err != nil {
		return nil, time.Time{}, err
	}
	u.sums, u.at = ledger.Sum(rows, []string{ledger.ByModel}), now
	return u.sums, u.at, nil
}

// ModelOptions are what the operations on models work with.
type ModelOptions struct {
	// Catalogue lists the models of the channels, Durations how long their videos take.
	Catalogue Catalogue
	Durations Durations
}

// modelOperations are those on the models that the channels make.
type modelOperations struct {
	ModelOptions

	states func(ctx context.Context) ([]router.ChannelState, error)
	usage  operator.UsageReader
	prices *pricing.List
	uses   modelUses
}

// add adds what the channels make of models.
func (o *modelOperations) add(g *edge.Group) {
	edge.Register(g, huma.Operation{
		OperationID: "adminListModels", Method: http.MethodGet, Path: Root + "/models", Summary: "List the models of all groups",
		Description: "What reaches each model, who serves it now, what it costs, how long its videos take and what it was used for; and what was used without a price.",
	}, o.list)
}

func (o *modelOperations) list(ctx context.Context, _ *struct{}) (adminModelList, error) {
	models, open := o.Catalogue.Catalogue()
	list := adminModelList{Object: "list", Data: make([]adminModel, len(models)), Open: orNone(open), Unpriced: []adminUnpriced{}}
	states := make(map[string]string)
	if channels, err := o.states(ctx); err == nil { // without it the list is as true, but for who serves now
		for _, channel := range channels {
			states[channel.Name] = channel.State
		}
	}
	for i, model := range models {
		list.Data[i] = o.show(model, states)
	}
	o.time(ctx, models, list.Data)
	sums, at, err := o.uses.of(ctx, o.usage)
	if err != nil {
		return list, nil //nolint:nilerr // the list says that uses are not known
	}
	list.UsedAt = &at
	for _, sum := range sums {
		use := adminModelUse{sum.Requests, sum.Tasks, sum.Failed, pricing.Money(sum.Cost)}
		for i := range list.Data {
			if list.Data[i].ID == sum.Model {
				list.Data[i].LastMonth = &use
			}
		}
		if _, priced := o.prices.Of(sum.Model); !priced && sum.Model != "" {
			list.Unpriced = append(list.Unpriced, adminUnpriced{sum.Model, use})
		}
	}
	slices.SortStableFunc(list.Unpriced, func(a, b adminUnpriced) int { return cmp.Compare(b.Requests+b.Tasks, a.Requests+a.Tasks) })
	return list, nil
}

func (o *modelOperations) show(model router.Listed, states map[string]string) adminModel {
	shown := adminModel{ID: model.ID, Formats: []string{}, Groups: orNone(model.Groups), Channels: []adminModelChannel{}}
	if model.Public != model.ID {
		shown.AliasOf = model.Public
	}
	for _, endpoint := range model.Endpoints {
		shown.Formats = append(shown.Formats, strings.TrimPrefix(endpoint.String(), ".")) // a task has no format
	}
	for _, channel := range model.Channels {
		shown.Channels = append(shown.Channels, adminModelChannel{
			Name: channel.Name, Vendor: channel.Vendor, Upstream: channel.Upstream, Groups: orNone(channel.Groups), Priority: channel.Priority,
			Weight: channel.Weight, State: states[channel.Name],
		})
	}
	if price, ok := o.prices.Of(model.Public); ok {
		shown.Price = newModelPrice(price)
	}
	if model.Video != nil {
		table := model.Video.Table()
		shown.Video = &table
	}
	return shown
}

// time fills in how long jobs usually take.
func (o *modelOperations) time(ctx context.Context, models []router.Listed, list []adminModel) {
	var asked []taskindex.Timed
	for _, model := range models {
		if slices.Contains(model.Endpoints, providers.Endpoint{Operation: providers.VideoTask}) {
			for _, channel := range model.Channels {
				asked = append(asked, taskindex.Timed{Channel: channel.Name, Model: model.Public})
			}
		}
	}
	usual, err := o.Durations.UsualOf(ctx, asked)
	if err != nil {
		return // as what is not known
	}
	for i, model := range models {
		for c := range list[i].Channels {
			channel := &list[i].Channels[c]
			if took, ok := usual[taskindex.Timed{Channel: channel.Name, Model: model.Public}]; ok {
				channel.UsualSeconds = new(took.Seconds())
			}
		}
	}
}
