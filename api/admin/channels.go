package admin

import (
	"context"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/providers/router"
	"modelrelay/storage"
	"modelrelay/storage/audit"
)

// ChannelDesk does what operators do with channels.
type ChannelDesk interface {
	// Pause keeps a channel out of routing in every process within a second, or with nil lets it in again.
	Pause(ctx context.Context, channel string, pause *router.Pause) error
	// Wake ends the cooldowns of a channel and its keys in every process within a second.
	Wake(ctx context.Context, channel string) error
	// Try asks a channel something free, or what is paid for. It writes the video of a paid test to the trial's To.
	Try(ctx context.Context, trial ChannelTrial) (ChannelTested, error)
	// Has tells whether the configuration has the channel.
	Has(channel string) bool
}

// ChannelTrial is what is tried.
type ChannelTrial struct {
	Channel, Model, Prompt string
	// Pay: make the cheapest video, or a short chat at a channel that chats. Without it nothing is asked that costs money.
	Pay bool
	// To gets the bytes of a video, nil for nobody. Told is called once the vendor has taken its job, nil for nobody.
	To   io.Writer
	Told func(job string)
	// Key is used in place of the channel's own, unless it is "", and forgotten.
	Key    providers.Secret
	Stream bool
}

// ChannelTested is what came of it.
type ChannelTested struct {
	ChannelAsked

	Object    string            `json:"object" enum:"channel.test"`
	Test      bool              `json:"test" doc:"Always true: no token pays, and nothing of it counts for or against the channel"`
	OK        bool              `json:"ok" doc:"Address, key and rights are good, or what was paid for came"`
	Verdict   string            `json:"verdict" doc:"In a line: that they are good, or what is wrong"`
	Code      string            `json:"code,omitempty" doc:"Names the sentence of verdict, for who has it in another language; absent: it is in English alone"`
	Values    map[string]string `json:"values,omitempty" doc:"What stands in the sentence, by name"`
	Lacks     []string          `json:"lacks,omitempty" doc:"Upstream models of the channel that the key may not use, as far as the vendor tells"`
	Status    int               `json:"status" doc:"The upstream's; 0: it has not answered, or nobody asked for its words"`
	Said      string            `json:"said" doc:"What the upstream said, 8 KiB of it at most"`
	RequestID string            `json:"upstream_request_id,omitempty"`
	FirstByte float64           `json:"first_byte_ms" doc:"When its answer began; 0: it did not"`
	Took      float64           `json:"ms"`
	Fault     string            `json:"fault,omitempty" doc:"How the gateway would take it, where it is no answer"`
	Reason    string            `json:"reason,omitempty"`
	Paid      *ChannelPaid      `json:"paid,omitempty" doc:"What a test with pay makes, or has made"`
}

// ChannelAsked is who was asked what.
type ChannelAsked struct {
	Channel   string `json:"channel"`
	Operation string `json:"operation" doc:"What the upstream was asked: of a chat its operation, else in words"`
	Model     string `json:"model" doc:"Of a paid test"`
	Upstream  string `json:"upstream_model"`
	Key       string `json:"key" doc:"Fingerprint of the key"`
}

// ChannelPaid is what the vendor bills of a test.
type ChannelPaid struct {
	Made       bool           `json:"made" doc:"It was made; false: it is what a test with pay would make"`
	Kind       string         `json:"kind" enum:"chat,video"`
	Model      string         `json:"model"`
	Seconds    string         `json:"seconds,omitempty"`
	Resolution string         `json:"resolution,omitempty"`
	Size       string         `json:"size,omitempty"`
	Price      *pricing.Money `json:"price,omitempty" doc:"By the prices of the configuration; absent: they have none for the model"`
	Job        string         `json:"job,omitempty" doc:"The vendor's own id of the video's job"`
	Bytes      int64          `json:"bytes,omitempty" doc:"Of the video, which was read whole"`
	Type       string         `json:"content_type,omitempty"`
}

const channelPath = Root + "/channels/{name}"

// ChannelName is the path of one channel. It is exported as TokenChange is.
type ChannelName struct {
	Name string `path:"name" doc:"The channel's name"`
}

// ChannelOptions are what the operations on channels work with.
type ChannelOptions struct {
	// Desk pauses, wakes and tests channels.
	Desk ChannelDesk
	// States lists how the channels are doing.
	States func(ctx context.Context) ([]router.ChannelState, error)
	// Draft writes a channel for the configuration file, which has it nowhere yet.
	Draft func(ctx context.Context, draft ChannelDraft) (ChannelDrafted, error)
	// Vendors are those that a channel may have, by name.
	Vendors func() []ChannelVendor
}

// channelOperations are those on channels.
type channelOperations struct{ ChannelOptions }

// add adds the operations on channels.
func (o *channelOperations) add(g *edge.Group) {
	o.addStates(g)
	o.addDrafts(g)
	o.addVerbs(g)
}

type adminChannelList struct {
	Object string                `json:"object" enum:"list"`
	Data   []router.ChannelState `json:"data" nullable:"false"`
}

// addStates adds the channels' state.
func (o *channelOperations) addStates(g *edge.Group) {
	edge.Register(g, huma.Operation{
		OperationID: "adminListChannels", Method: http.MethodGet, Path: Root + "/channels", Summary: "How the channels are doing",
		Description: "State, cooldown, calls in flight and rates of every channel, of its models that are not closed, and of each of its keys, which are named by their fingerprints.",
	}, func(ctx context.Context, _ *struct{}) (adminChannelList, error) {
		states, err := o.States(ctx)
		return adminChannelList{Object: "list", Data: states}, operator.StoreFault("channel", "", err)
	})
}

// addVerbs adds what operators do with channels.
func (o *channelOperations) addVerbs(g *edge.Group) {
	edge.Register(g, huma.Operation{
		OperationID: "adminPauseChannel", Method: http.MethodPost, Path: channelPath + "/pause", Summary: "Pause a channel",
		Description: "No call goes there and no new video job, in any process within a second; video jobs that run there go on being polled. " +
			"It holds over restarts. A pause that is there already is replaced.",
	}, func(ctx context.Context, in *struct {
		ChannelName

		Body struct {
			Minutes int      `json:"minutes" minimum:"1" maximum:"43200" doc:"How long"`
			Reason  string   `json:"reason,omitempty" maxLength:"200" doc:"What other operators read"`
			_       struct{} `json:"-" additionalProperties:"false"`
		}
	},
	) (router.ChannelState, error) {
		x := edge.Of(ctx)
		x.Act.Changes = []audit.Change{audit.Set("minutes", in.Body.Minutes), audit.Set("reason", in.Body.Reason)}
		pause := &router.Pause{Until: time.Now().Add(time.Duration(in.Body.Minutes) * time.Minute).UTC(), By: x.Act.By.Name, Reason: in.Body.Reason}
		return o.done(ctx, in.Name, func() error { return o.Desk.Pause(ctx, in.Name, pause) })
	})
	edge.Register(g, huma.Operation{
		OperationID: "adminResumeChannel", Method: http.MethodPost, Path: channelPath + "/resume", Summary: "End a channel's pause",
		Description: "In every process within a second. One that is not paused stays as it is.",
	}, func(ctx context.Context, in *ChannelName) (router.ChannelState, error) {
		return o.done(ctx, in.Name, func() error { return o.Desk.Pause(ctx, in.Name, nil) })
	})
	edge.Register(g, huma.Operation{
		OperationID: "adminWakeChannel", Method: http.MethodPost, Path: channelPath + "/wake", Summary: "End a channel's cooldowns",
		Description: "Those of its models and keys too, in every process within a second. What goes on failing cools down again.",
	}, func(ctx context.Context, in *ChannelName) (router.ChannelState, error) {
		return o.done(ctx, in.Name, func() error { return o.Desk.Wake(ctx, in.Name) })
	})
	edge.Register(g, huma.Operation{
		OperationID: "adminTestChannel", Method: http.MethodPost, Path: channelPath + "/test", Summary: "Test a channel",
		Description: "Asks the vendor something free (models, the account, an unknown job) with one key and says in a line whether address, key and rights are good. " +
			"Its paid member says what a test with pay would make, and its price. With pay, one short chat is made, or the cheapest video, which is followed until it was read: " +
			"that takes minutes. No other channel or key is tried, no token pays, and a paused or resting channel is asked as well. " +
			"Of a chat the answer has the upstream's own words, also where it refuses. The upstream bills what is made.",
	}, o.test)
}

func (o *channelOperations) test(ctx context.Context, in *struct {
	ChannelName

	Body *struct {
		Key    string   `json:"key,omitempty" maxLength:"16384" doc:"Used in place of the channel's first key, and forgotten"`
		Pay    bool     `json:"pay,omitempty" doc:"Make what the vendor bills: a short chat, or the cheapest video"`
		Model  string   `json:"model,omitempty" maxLength:"256" doc:"Public name of the model that makes it; absent: of videos the cheapest, else the first by name"`
		Stream bool     `json:"stream,omitempty" doc:"Ask for the chat as a stream"`
		Prompt string   `json:"prompt,omitempty" maxLength:"4000" doc:"What a chat is asked; absent: to say hello"`
		_      struct{} `json:"-" additionalProperties:"false"`
	}
},
) (ChannelTested, error) {
	trial := ChannelTrial{Channel: in.Name}
	x := edge.Of(ctx)
	x.Act.Subject = in.Name
	if in.Body != nil {
		trial.Key, trial.Model, trial.Stream, trial.Prompt, trial.Pay = providers.Secret(in.Body.Key), in.Body.Model, in.Body.Stream, in.Body.Prompt, in.Body.Pay
		x.Act.Changes = []audit.Change{
			audit.Set("model", in.Body.Model), audit.Set("stream", in.Body.Stream), audit.Set("own_key", in.Body.Key != ""), audit.Set("pay", in.Body.Pay),
		}
	}
	if !o.Desk.Has(in.Name) {
		return ChannelTested{}, operator.StoreFault("channel", in.Name, storage.ErrNotFound)
	}
	// Whoever asked may be gone when the video is there: the audit log says where the vendor has it.
	trial.Told = func(job string) { x.Act.Changes = append(x.Act.Changes, audit.Set("job", job)) }
	return o.Desk.Try(ctx, trial)
}

// done does something with a channel and answers with how the channel is doing now.
func (o *channelOperations) done(ctx context.Context, name string, do func() error) (now router.ChannelState, err error) {
	edge.Of(ctx).Act.Subject = name
	var states []router.ChannelState
	if err = storage.ErrNotFound; o.Desk.Has(name) {
		err = do()
	}
	if err == nil {
		states, err = o.States(ctx)
	}
	if err != nil {
		return now, operator.StoreFault("channel", name, err)
	}
	at := slices.IndexFunc(states, func(state router.ChannelState) bool { return state.Name == name })
	if at < 0 { // the configuration changed meanwhile
		return now, operator.StoreFault("channel", name, storage.ErrNotFound)
	}
	return states[at], nil
}
