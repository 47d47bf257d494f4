package providers

import (
	"cmp"
	"net/url"
	"slices"
)

// Vendor is the code for one kind of upstream, as the catalog lists it.
type Vendor struct {
	Name string
	// Provider is what the OpenTelemetry conventions call the service, "" where that is the vendor's name.
	Provider string
	// Relay sends synchronous calls; nil where the vendor has none.
	Relay Relayer
	// Endpoints are those Relay takes as they are. Other formats need a translator.
	Endpoints []Endpoint
	// Takes are those that calls of other formats may be translated to, best first; none: there is no translation to this
	// vendor.
	Takes []Endpoint
	// Usage says where the answers of an endpoint count tokens. An endpoint that is missing counts nothing.
	Usage map[Endpoint]UsageShape
	// Video drives the vendor's jobs; nil where it has none.
	Video VideoAdapter
	// Several tells that Video makes several videos of one request where it asks for them (VideoRequest.N).
	Several bool
	// VideoModels is the vendor's table of what its models take, by the upstream's name; false for a model that is not in it, whose
	// requests pass unchecked. nil: there is no table.
	VideoModels func(model string) (VideoModel, bool)
	// VideoUsual is what the vendor's models make of a request that does not say it.
	VideoUsual Footage
	// VideoPaths are where a create says what the vendor bills.
	VideoPaths VideoPaths
	// RefuseVideo is the fault of what a model takes, but not together, as far as a request's shape tells, which the model's table
	// takes; nil where there is none. The adapter asks it as well. nil: the table says everything.
	RefuseVideo func(model string, shape VideoShape) *Fault
	// NamesFields tells that Video writes a request by Channel.Fields: the vendor hosts models that have names of their own.
	NamesFields bool
	// Realtime opens conversations; nil where it has none.
	Realtime Dialer
	// Priced is what the vendor bills beside the tokens of a call.
	Priced Priced
	// Traits are what a model takes in chats, by its name; nil: calls are not written by its name.
	Traits func(model string) Traits
	// Dialects tells that a channel may serve only one of the vendor's two chat endpoints (Channel.Dialect).
	Dialects bool
	// BaseURL is the vendor's own address, for a channel that names none; "" where each channel must.
	BaseURL string
	// CheckBaseURL tells whether an address is as the vendor's own SDK takes it; nil accepts any.
	CheckBaseURL func(*url.URL) error
	// CheckKey tells whether a key has the vendor's shape; nil accepts any non-empty one.
	CheckKey func(Secret) error
}

// Serves tells whether the vendor takes the endpoint as it is. VideoTask asks for a VideoAdapter, whatever the format,
// and Realtime for a Dialer.
func (v Vendor) Serves(e Endpoint) bool {
	switch e.Operation {
	case VideoTask:
		return v.Video != nil
	case Realtime:
		return v.Realtime != nil && e == RealtimeSession()
	}
	return v.Relay != nil && slices.Contains(v.Endpoints, e)
}

// VideoModel is what an upstream model takes at a channel of the vendor; false for one that is not known, whose requests pass
// unchecked.
func (v Vendor) VideoModel(c Channel, model string) (VideoModel, bool) {
	if v.VideoModels == nil {
		return VideoModel{}, false
	}
	known, ok := v.VideoModels(model)
	if ok && v.NamesFields {
		known = c.FieldsOf(model).Open(known)
	}
	return known, ok
}

// CheckVideo tells whether an upstream model makes what is asked for at a channel of the vendor: nil, or the fault of the field
// that it does not take. A model that is not known passes.
func (v Vendor) CheckVideo(c Channel, model string, shape VideoShape) *Fault {
	known, ok := v.VideoModel(c, model)
	if !ok {
		return nil
	}
	if fault := known.Check(shape); fault != nil || v.RefuseVideo == nil {
		return fault
	}
	return v.RefuseVideo(model, shape)
}

// Made completes what a vendor says of a job that is done by what its model always makes.
func (v Vendor) Made(model string, status VideoStatus) VideoStatus {
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

// Convention is what the OpenTelemetry conventions for generative AI call the vendor's service.
func (v Vendor) Convention() string {
	if v.Provider != "" {
		return v.Provider
	}
	return v.Name
}

// Catalog is the table of vendors by name.
type Catalog map[string]Vendor
