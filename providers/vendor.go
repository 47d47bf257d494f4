package providers

import (
	"cmp"
	"net/url"
	"slices"
)

// Vendor is the code for one kind of upstream, an entry of the catalog.
type Vendor struct {
	Name string
	// Provider is the service's name in the OpenTelemetry conventions, "" for the vendor's name.
	Provider string
	// Relay sends synchronous calls; nil for none.
	Relay Relayer
	// Endpoints are those that Relay accepts without translation.
	Endpoints []Endpoint
	// Takes are the endpoints to which calls of other formats may be translated, best first; none: there is no translation to this vendor.
	Takes []Endpoint
	// Usage describes where the answers of an endpoint contain usage. A missing endpoint counts nothing.
	Usage map[Endpoint]UsageShape
	// Video drives the vendor's jobs; nil for none.
	Video VideoAdapter
	// Several: Video makes several videos of one request (VideoRequest.N).
	Several bool
	// VideoModels returns what an upstream model accepts; for an unknown one the fields of the vendor, and false. nil: there is no table.
	VideoModels func(model string) (VideoModel, bool)
	// VideoUsual is what the vendor's models make of a request that leaves it open.
	VideoUsual Footage
	// VideoPaths are where a create contains what the vendor bills.
	VideoPaths VideoPaths
	// RefuseVideo checks what VideoModels cannot express; the adapter calls it too. nil: the table is complete.
	RefuseVideo RefuseVideo
	// NamesFields: Video writes a request with Channel.Fields, because the vendor hosts models with their own field names.
	NamesFields bool
	// Realtime opens conversations; nil for none.
	Realtime Dialer
	// Priced is what the vendor bills in addition to the tokens of a call.
	Priced Priced
	// Traits returns what a model accepts in chats, by its name; nil: calls are the same for all models.
	Traits func(model string) Traits
	// Dialects: a channel may serve only one of the vendor's two chat endpoints (Channel.Dialect).
	Dialects bool
	// BaseURL is the vendor's own address, for a channel without one; "" if every channel requires one.
	BaseURL string
	// CheckBaseURL returns an error if a URL is not as the vendor's own SDK accepts it; nil accepts any.
	CheckBaseURL func(*url.URL) error
	// CheckKey returns an error if a key does not have the vendor's form; nil accepts any that is not empty.
	CheckKey func(Secret) error
}

// RefuseVideo returns the fault of values that a model accepts, but not together; nil for none. The frame is that of the shape.
type RefuseVideo func(model string, shape VideoShape, frame Frame) *Fault

// Serves reports whether the vendor accepts the endpoint without translation. VideoTask requires Video, Realtime a Dialer.
func (v Vendor) Serves(e Endpoint) bool {
	switch e.Operation {
	case VideoTask:
		return v.Video != nil
	case Realtime:
		return v.Realtime != nil && e == RealtimeSession()
	}
	return v.Relay != nil && slices.Contains(v.Endpoints, e)
}

// VideoModel returns what an upstream model accepts at a channel of the vendor. false: the model is unknown and not checked.
func (v Vendor) VideoModel(c Channel, model string) (VideoModel, bool) {
	if v.VideoModels == nil {
		return VideoModel{}, false
	}
	known, ok := v.VideoModels(model)
	switch {
	case !ok:
		return VideoModel{}, false
	case v.NamesFields:
		known = c.FieldsOf(model).Open(known)
	}
	return known, true
}

// CheckVideo returns the fault of the field that an upstream model does not accept at a channel of the vendor, nil for none.
func (v Vendor) CheckVideo(c Channel, model string, shape VideoShape) *Fault {
	known, ok := v.VideoModel(c, model)
	if !ok {
		return nil
	}
	frame, fault := known.Accept(shape)
	if fault != nil || v.RefuseVideo == nil {
		return fault
	}
	return v.RefuseVideo(model, shape, frame)
}

// WithFootage completes the status of a finished job with what its model always makes.
func (v Vendor) WithFootage(model string, status VideoStatus) VideoStatus {
	if v.VideoModels == nil {
		return status
	}
	known, ok := v.VideoModels(model)
	if !ok {
		return status
	}
	if len(known.Resolutions) == 1 && !takesAny(known.Resolutions) {
		status.Resolution = cmp.Or(status.Resolution, known.Resolutions[0])
	}
	switch known.Audio {
	case AudioAlways:
		status.Audio = cmp.Or(status.Audio, "true")
	case AudioNever:
		status.Audio = cmp.Or(status.Audio, "false")
	}
	return status
}

// Convention returns the vendor's name in the OpenTelemetry conventions for generative AI.
func (v Vendor) Convention() string {
	if v.Provider != "" {
		return v.Provider
	}
	return v.Name
}

// Catalog is the table of vendors by name.
type Catalog map[string]Vendor
