package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"modelrelay/api/admin"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/providers/relay"
	"modelrelay/providers/trial"
	"modelrelay/providers/veo"
)

const (
	// checkMost bounds a free check, of a few small requests.
	checkMost = 30 * time.Second
	// videoMost bounds a paid test of videos. Most vendors make their cheapest one within five minutes; a job that takes longer
	// goes on at its vendor, and the test names it.
	videoMost = 20 * time.Minute
	// What a short chat usually counts, in tokens: a few words in, and what most formats are told to allow out.
	chatIn, chatOut = 20, 64
)

// Try implements admin.ChannelDesk.
func (d channelDesk) Try(ctx context.Context, t admin.ChannelTrial) (admin.ChannelTested, error) {
	channel, _ := d.health.router.Channel(t.Channel)
	vendor := d.catalog[channel.Vendor]
	if veo.LeadsElsewhere(t.Key, channel.Keys) {
		return admin.ChannelTested{}, providers.InvalidField("key", "Invalid request: 'key': %s", keyNotTyped)
	}
	ask, err := trial.New(vendor, channel, t.Key)
	if err != nil {
		return admin.ChannelTested{}, err
	}
	tested := admin.ChannelTested{Object: "channel.test", Test: true}
	tested.Channel, tested.Key = t.Channel, ask.Target.Key.Fingerprint()
	chats := d.chats(vendor, t.Model)
	switch {
	case !t.Pay:
		err = d.check(ctx, ask, t, chats, &tested)
	case chats:
		err = d.chat(ctx, t, ask, &tested)
	default:
		err = d.video(ctx, ask, t, &tested)
	}
	return tested, err
}

// chats tells whether a paid test of a channel is a chat. A vendor of both makes a video of a model that has the price of one.
func (d channelDesk) chats(vendor providers.Vendor, model string) bool {
	price, _ := d.prices.Of(model)
	return vendor.Relay != nil && (vendor.Video == nil || price.VideoSecond == nil && price.Video == nil && price.Tiers == nil)
}

// check asks what is free, and says what a paid test would make.
func (d channelDesk) check(ctx context.Context, ask trial.Ask, t admin.ChannelTrial, chats bool, tested *admin.ChannelTested) error {
	var paid *admin.ChannelPaid
	if chats {
		if model := chatModel(ask.Target.Channel, t.Model); model != "" {
			paid = &admin.ChannelPaid{Kind: "chat", Model: model, Price: d.chatPrice(model)}
		}
	} else if plan, err := ask.Plan(t.Model, d.prices); err == nil {
		paid = planned(plan)
	} else if t.Model != "" {
		return err
	}
	tested.Paid = paid
	ctx, cancel := context.WithTimeout(ctx, checkMost)
	defer cancel()
	began := time.Now()
	verdict := ask.Check(ctx)
	tested.Took = milliseconds(time.Since(began))
	tested.OK, tested.Operation, tested.Lacks = verdict.OK, verdict.Asked, verdict.Lacks
	tell(tested, verdict.Said)
	if fault := verdict.Fault; fault != nil {
		tested.Fault, tested.Reason = string(fault.Kind), providers.Shown(fault.Message)
		if fault.Upstream != nil {
			tested.Status, tested.RequestID = fault.Upstream.Status, fault.Upstream.RequestID
		}
	}
	return nil
}

// tell puts a sentence into what came of a test.
func tell(tested *admin.ChannelTested, said trial.Said) {
	tested.Verdict, tested.Code, tested.Values = said.Words, said.Code, said.Values
}

// chatModel is the model of a short chat: the one that is named, else the first by name.
func chatModel(channel providers.Channel, model string) string {
	if model != "" {
		return model
	}
	for _, name := range slices.Sorted(maps.Keys(channel.Models)) {
		if !providers.IsPattern(name) {
			return name
		}
	}
	return ""
}

// chatPrice is what a short chat costs, about: a long prompt, or a model that thinks, costs more. It is nil where the prices have nothing for the model.
func (d channelDesk) chatPrice(model string) *pricing.Money {
	price, priced := d.prices.Of(model)
	if !priced {
		return nil
	}
	cost := price.Cost(pricing.Measure{Requests: 1, Usage: providers.Usage{Input: chatIn, Output: chatOut}})
	return &cost
}

func planned(plan trial.Plan) *admin.ChannelPaid {
	paid := &admin.ChannelPaid{Kind: "video", Model: plan.Model, Seconds: plan.Request.Seconds, Resolution: plan.Request.Resolution, Size: plan.Request.Size}
	if plan.Priced {
		paid.Price = &plan.Price
	}
	return paid
}

// chat makes the one short chat.
func (d channelDesk) chat(ctx context.Context, t admin.ChannelTrial, ask trial.Ask, tested *admin.ChannelTested) error {
	result, err := d.relay.Try(ctx, relay.Trial{Channel: ask.Target.Channel, Key: t.Key, Model: t.Model, Prompt: t.Prompt, Stream: t.Stream})
	if err != nil {
		return err
	}
	tested.Operation, tested.Model, tested.Upstream, tested.Key = result.Endpoint.String(), result.Model, result.Upstream, result.Key
	tested.OK = result.Fault == nil && result.Status/100 == 2
	tell(tested, trial.Answered())
	tested.Status, tested.Said, tested.RequestID = result.Status, result.Said, result.RequestID
	tested.FirstByte, tested.Took = milliseconds(result.FirstByte), milliseconds(result.Took)
	if result.Fault != nil {
		tested.Fault, tested.Reason = string(result.Fault.Kind), providers.Shown(result.Fault.Message)
		tell(tested, trial.Refused(result.Fault, ask.Target.Key))
	}
	tested.Paid = &admin.ChannelPaid{Made: tested.OK, Kind: "chat", Model: result.Model, Price: d.chatPrice(result.Model)}
	return nil
}

// video makes the cheapest video and follows it until it was read.
func (d channelDesk) video(ctx context.Context, ask trial.Ask, t admin.ChannelTrial, tested *admin.ChannelTested) error {
	plan, err := ask.Plan(t.Model, d.prices)
	if err != nil {
		return err
	}
	tested.Operation, tested.Model, tested.Upstream, tested.Paid = "a video", plan.Model, plan.Upstream, planned(plan)
	ctx, cancel := context.WithTimeout(ctx, videoMost)
	defer cancel()
	began := time.Now()
	follow := trial.Follow{To: t.To}
	if t.Told != nil {
		told := false
		follow.Told = func(job string, _ providers.VideoStatus) {
			if !told {
				told = true
				t.Told(job)
			}
		}
	}
	made, err := ask.Make(ctx, plan, follow)
	tested.Took, tested.Paid.Job, tested.Paid.Bytes, tested.Paid.Type = milliseconds(time.Since(began)), made.Job, made.Bytes, made.ContentType
	tested.Paid.Made = made.Job != ""
	if err == nil {
		tested.OK = true
		tell(tested, trial.Read())
		return nil
	}
	fault := providers.AsFault(err)
	tell(tested, ask.Trouble(made, err))
	tested.Fault, tested.Reason = string(fault.Kind), providers.Shown(fault.Message)
	if fault.Upstream != nil {
		tested.Status, tested.RequestID = fault.Upstream.Status, fault.Upstream.RequestID
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
