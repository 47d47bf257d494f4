package metrics

import (
	"cmp"
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"modelrelay/api"
	"modelrelay/providers/health"
	"modelrelay/storage/calllog"
	"modelrelay/storage/ledger"
	"modelrelay/storage/limits"
	"modelrelay/storage/tokens"
)

// WatchChannels reports the channels' health in this process. waiting returns the number of calls that wait for a slot at a channel.
func (m *Metrics) WatchChannels(monitor *health.Monitor, waiting func(channel string) int) error {
	in := &instruments{meter: m.meter}
	states := in.gauge("gateway.channel.state", "1 for the state that the channel is in: closed, half-open (its cooldown has ended, and no call succeeded since), open or disabled.")
	keys := in.gauge("gateway.channel.keys", "Keys of the channel by their state.")
	models := in.gauge("gateway.channel.model.state",
		"1 for the state of a model of the channel that is not closed: half-open or open; other: how many pairs without labels of their own are in the state.")
	inFlight := in.gauge("gateway.channel.in_flight", "Relayed calls and conversations in progress at the channel.")
	most := in.gauge("gateway.channel.max_calls",
		"Relayed calls and conversations that this process may have in progress at the channel, where that is limited.")
	line := in.gauge("gateway.channel.calls_waiting", "Calls that wait for a slot at a channel with as many in progress as it may have.")
	all := in.gauge("gateway.model.channels", "Channels that the configuration has for the model; other: for the model that has the fewest available ones.")
	fit := in.gauge("gateway.model.channels.available",
		"Channels of the model that are not open for it, nor have all their keys open; other: the fewest of a model without a label of its own.")
	return m.observe(in, func(_ context.Context, o metric.Observer) {
		names := m.names.Load()
		available := map[string]bool{}
		notClosed := map[carried]string{}
		for _, channel := range monitor.States() {
			name := attribute.String("channel", names.channel(channel.Name))
			vendor := attribute.String("vendor", channel.Vendor)
			for _, state := range channelStates() {
				o.ObserveInt64(states, is(channel.State == state), metric.WithAttributes(name, vendor, attribute.String("state", state)))
			}
			of := map[string]int64{}
			for _, key := range channel.Keys {
				of[key.State]++
			}
			for _, state := range channelStates() {
				if state != health.StateDisabled { // keys are never disabled
					o.ObserveInt64(keys, of[state], metric.WithAttributes(name, attribute.String("state", state)))
				}
			}
			for _, model := range channel.Models {
				notClosed[carried{channel.Name, model.Model}] = model.State
			}
			o.ObserveInt64(inFlight, channel.InFlight, metric.WithAttributes(name, vendor))
			if channel.MaxCalls > 0 {
				o.ObserveInt64(most, int64(channel.MaxCalls), metric.WithAttributes(name, vendor))
				o.ObserveInt64(line, int64(waiting(channel.Name)), metric.WithAttributes(name, vendor))
			}
			available[channel.Name] = works(channel.State) && (len(channel.Keys) == 0 || of[health.StateClosed]+of[health.StateHalfOpen] > 0)
		}
		others := map[string]int64{} // pairs without their own labels, by state
		least, leastOf := int64(-1), int64(0)
		for model, channels := range names.carriers {
			n := int64(0)
			for _, channel := range channels {
				state := cmp.Or(notClosed[carried{channel, names.upstreams[carried{channel, model}]}], health.StateClosed)
				n += is(available[channel] && works(state))
				if state == health.StateClosed {
					continue
				}
				pair := m.labels.pairs.of(carried{channel, model})
				if pair.channel == otherName {
					others[state]++
					continue
				}
				o.ObserveInt64(models, 1, pairLabels(pair, state))
			}
			if m.labels.models.has(model) {
				label := metric.WithAttributes(attribute.String("model", model))
				o.ObserveInt64(all, int64(len(channels)), label)
				o.ObserveInt64(fit, n, label)
			} else if least < 0 || n < least {
				least, leastOf = n, int64(len(channels))
			}
		}
		for state, n := range others {
			o.ObserveInt64(models, n, pairLabels(carried{otherName, otherName}, state))
		}
		if least >= 0 {
			label := metric.WithAttributes(attribute.String("model", otherName))
			o.ObserveInt64(all, leastOf, label)
			o.ObserveInt64(fit, least, label)
		}
	}, states, keys, models, inFlight, most, line, all, fit)
}

func pairLabels(pair carried, state string) metric.MeasurementOption {
	return metric.WithAttributes(
		attribute.String("channel", pair.channel), attribute.String("model", pair.model), attribute.String("state", state))
}

func channelStates() []string {
	return []string{health.StateClosed, health.StateHalfOpen, health.StateOpen, health.StateDisabled}
}

func works(state string) bool {
	return state == health.StateClosed || state == health.StateHalfOpen
}

func is(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// Stores are the stores of the HTTP server that continue while Redis does not answer.
type Stores struct {
	Tokens *tokens.Store
	Limits *limits.Limiter
	Usage  *ledger.Usage
	// Calls is the log of calls, History its history; nil for none.
	Calls   *calllog.Log
	History *calllog.History
}

// WatchServer reports what the HTTP server has open, and the state of its stores.
func (m *Metrics) WatchServer(server *api.Server, with Stores) error {
	in := &instruments{meter: m.meter}
	requests := in.gauge("http.server.active_requests", "Requests being served, streams and conversations among them.")
	sockets := in.gauge("gateway.realtime.open", "Realtime conversations.")
	watchers := in.gauge("gateway.task.watchers", "Open event streams of tasks.")
	connections := in.gauge("gateway.connections.open", "Connections of clients, idle ones too.")
	full := in.gauge("gateway.connections.full", "1 while no new connection is accepted, because as many are open as the limit of open files has room for.")
	turnedAway := in.seen("gateway.connections.turned_away",
		"Connections that were closed at once, because their network held half of all places.")
	away := in.gauge("gateway.redis.away", "1 while Redis does not answer the part: known tokens are served from memory, limits count for this process alone, usage is kept.")
	failures := in.seen("gateway.redis.write_failures",
		"Batches that Redis did not take; they are sent again, but for rows of the ledger that it refuses (usage_refused).")
	dropped := in.seen("gateway.calls.dropped", "Records of calls that the log lost, because too many waited for Redis, or because it refuses them.")
	forgotten := in.seen("gateway.calls.history.dropped", "Records of calls that the history lost, because the archive was away for too long.")
	part := func(name string) metric.ObserveOption { return metric.WithAttributes(attribute.String("part", name)) }
	ofTokens, ofLimits, ofUsage, ofRefused := part("tokens"), part("limits"), part("usage"), part("usage_refused")
	return m.observe(in, func(_ context.Context, o metric.Observer) {
		open := server.Open()
		o.ObserveInt64(requests, open.Requests)
		o.ObserveInt64(sockets, open.Sockets)
		o.ObserveInt64(watchers, open.Watchers)
		o.ObserveInt64(connections, open.Connections)
		o.ObserveInt64(full, is(open.Full))
		o.ObserveInt64(turnedAway, open.TurnedAway)
		o.ObserveInt64(away, is(with.Tokens.Away()), ofTokens)
		o.ObserveInt64(away, is(with.Limits.Away()), ofLimits)
		o.ObserveInt64(away, is(with.Usage.Away()), ofUsage)
		if with.Calls != nil {
			o.ObserveInt64(away, is(with.Calls.Away()), part("calls"))
			o.ObserveInt64(dropped, with.Calls.Dropped())
		}
		if with.History != nil {
			o.ObserveInt64(forgotten, with.History.Dropped())
		}
		o.ObserveInt64(failures, with.Limits.Failures(), ofLimits)
		o.ObserveInt64(failures, with.Usage.Failures(), ofUsage)
		o.ObserveInt64(failures, with.Usage.Refused(), ofRefused)
	}, requests, sockets, watchers, connections, full, turnedAway, away, failures, dropped, forgotten)
}
