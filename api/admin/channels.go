package admin

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/console/words"
	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/providers"
	"modelrelay/providers/channeltest"
	"modelrelay/providers/router"
	"modelrelay/storage"
	"modelrelay/storage/audit"
)

// ChannelDesk does what operators do with channels.
type ChannelDesk interface {
	// Pause keeps a channel out of routing in every process within a second, or with nil lets it in again. The error is
	// storage.ErrNotFound where the configuration does not have the channel.
	Pause(ctx context.Context, channel string, pause *router.Pause) error
	// Wake ends the cooldowns of a channel and its keys in every process within a second; its errors are those of Pause.
	Wake(ctx context.Context, channel string) error
	// Test asks a channel's vendor something free; key replaces the channel's own unless it is "", and is not stored.
	Test(ctx context.Context, channel string, key providers.Secret) (channeltest.Result, error)
}

// ChannelTested is the outcome of a channel's test.
type ChannelTested struct {
	channeltest.Result

	Verdict string `json:"verdict" doc:"The sentence that code names, in English"`
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
}

// channelOperations are those on channels.
type channelOperations struct {
	ChannelOptions

	texts words.Texts
}

// add adds the operations on channels.
func (o *channelOperations) add(g *edge.Group) {
	o.addStates(g)
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
		Description: "Asks the vendor something free (models, the account, an unknown job) with one key, and reports whether address, key and rights are good. " +
			"No other channel or key is asked, no token is charged, and a paused channel, or one that cools down, is asked as well.",
	}, o.test)
}

func (o *channelOperations) test(ctx context.Context, in *struct {
	ChannelName

	Body *struct {
		Key string   `json:"key,omitempty" maxLength:"16384" doc:"Replaces the channel's first key for this test, and is not stored"`
		_   struct{} `json:"-" additionalProperties:"false"`
	}
},
) (ChannelTested, error) {
	var key providers.Secret
	x := edge.Of(ctx)
	x.Act.Subject = in.Name
	if in.Body != nil {
		key = providers.Secret(in.Body.Key)
	}
	x.Act.Changes = []audit.Change{audit.Set("own_key", key != "")}
	result, err := o.Desk.Test(ctx, in.Name, key)
	return ChannelTested{result, english(o.texts, result.Code, result.Values)}, err
}

// english is the English sentence of a code; "" of no code.
func english(texts words.Texts, code string, values map[string]string) string {
	if code == "" {
		return ""
	}
	return texts.Finding(words.Languages()[0], code, values)
}

// done does something with a channel and answers with how the channel is doing now.
func (o *channelOperations) done(ctx context.Context, name string, do func() error) (now router.ChannelState, err error) {
	edge.Of(ctx).Act.Subject = name
	var states []router.ChannelState
	if err = do(); err == nil {
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
