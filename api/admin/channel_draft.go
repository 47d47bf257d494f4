package admin

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/storage/audit"
)

// ChannelDraft is a channel that the configuration file shall have.
type ChannelDraft struct {
	Name     string            `json:"name" minLength:"1" maxLength:"128" doc:"Unique; tasks remember it"`
	Vendor   string            `json:"vendor" minLength:"1" maxLength:"64" doc:"Code for this kind of upstream, as the list of vendors names it"`
	BaseURL  string            `json:"base_url,omitempty" maxLength:"2048" doc:"Address as that vendor's own SDK takes it; absent: the vendor's own, where it has one"`
	Models   map[string]string `json:"models" nullable:"false" minProperties:"1" maxProperties:"1000" doc:"Public name: upstream name; empty: the same"`
	Groups   []string          `json:"groups,omitempty" maxItems:"100" doc:"Token groups that may use it; absent: default"`
	Priority int               `json:"priority,omitempty" doc:"Higher first"`
	Weight   *int              `json:"weight,omitempty" minimum:"0" doc:"Share among channels of one priority; absent: 1"`
	MaxJobs  int               `json:"max_jobs,omitempty" minimum:"0" doc:"Video jobs in flight at this upstream; 0: no limit"`
	MaxCalls int               `json:"max_calls,omitempty" minimum:"0" doc:"Calls in flight at this upstream, of each process; 0: no limit"`
	Variable string            `json:"variable,omitempty" maxLength:"128" doc:"Environment variable that holds the key; absent: one that is made of the name"`
	Key      string            `json:"key,omitempty" maxLength:"16384" doc:"Its shape is checked, and it is tried with something free where the address is a vendor's own or one that the file has; then it is forgotten. It is no part of the draft"`
	_        struct{}          `json:"-" additionalProperties:"false"`
}

// ChannelDrafted is a draft that the configuration file would take.
type ChannelDrafted struct {
	Object   string         `json:"object" enum:"channel_draft"`
	YAML     string         `json:"yaml" doc:"The section channels with the entry alone. Where the file has that section, the entry goes to its end"`
	Variable string         `json:"variable" doc:"Environment variable that the entry names; it must be set before the file has the entry"`
	Warnings []SetupFinding `json:"warnings" nullable:"false" doc:"What an operator may not want of it"`
	Tested   *ChannelTested `json:"tested,omitempty" doc:"What came of the key; absent: it was not tried"`
}

// ChannelVendor is a kind of upstream.
type ChannelVendor struct {
	Name       string   `json:"name"`
	BaseURL    string   `json:"base_url" doc:"Its own address; empty: each channel names one"`
	Operations []string `json:"operations" nullable:"false" doc:"What it is for: relay, video, realtime"`
}

type adminVendorList struct {
	Object string          `json:"object" enum:"list"`
	Data   []ChannelVendor `json:"data" nullable:"false"`
}

// addDrafts adds what writes channels for the configuration file, which stays the only place where they are.
func (o *channelOperations) addDrafts(g *edge.Group) {
	edge.Register(g, huma.Operation{
		OperationID: "adminListVendors", Method: http.MethodGet, Path: Root + "/vendors", Summary: "List the vendors that a channel may have",
		Description: "By name.",
	}, func(context.Context, *struct{}) (adminVendorList, error) {
		return adminVendorList{Object: "list", Data: o.Vendors()}, nil
	})
	edge.Register(g, huma.Operation{
		OperationID: "adminDraftChannel", Method: http.MethodPost, Path: Root + "/channels/draft", Summary: "Draft a channel for the configuration file",
		Description: "Nothing is changed: the answer has YAML to put into the configuration file, which was read as the file is. What the file would refuse is refused with 400. " +
			"A key that is sent is tried once with something free, and forgotten: the draft names an environment variable.",
	}, func(ctx context.Context, in *struct{ Body ChannelDraft }) (ChannelDrafted, error) {
		x := edge.Of(ctx)
		x.Act.Subject = in.Body.Name
		x.Act.Changes = []audit.Change{audit.Set("vendor", in.Body.Vendor), audit.Set("own_key", in.Body.Key != "")}
		drafted, err := o.Draft(ctx, in.Body)
		drafted.Object, drafted.Warnings = "channel_draft", orNone(drafted.Warnings)
		return drafted, err
	})
}
