package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/storage/channelhealth"
	"modelrelay/storage/slots"
)

// channelDesk is what operators do with channels. It implements admin.ChannelDesk.
type channelDesk struct {
	health  *healthSharer
	relay   *relay.Relay
	catalog providers.Catalog
	prices  *pricing.List
}

func (u *upstreams) desk(cfg config.Config, log *slog.Logger) channelDesk {
	return channelDesk{
		u.health, relay.New(u.router, u.catalog, &relay.Options{FirstByte: cfg.Relay.FirstByteTimeout, Log: log}), u.catalog, u.prices,
	}
}

// Has implements admin.ChannelDesk.
func (d channelDesk) Has(channel string) bool {
	_, has := d.health.router.Channel(channel)
	return has
}

// Pause implements admin.ChannelDesk.
func (d channelDesk) Pause(ctx context.Context, channel string, pause *router.Pause) error {
	s := d.health
	record := cooldownRecord{Resumed: channel}
	cooldown := channelhealth.Cooldown{Name: "pause " + url.QueryEscape(channel), Left: router.PauseMost, Firm: true}
	if pause != nil {
		record, cooldown.Left = cooldownRecord{Paused: channel, By: pause.By, Reason: pause.Reason}, time.Until(pause.Until)
	}
	if err := s.tell(ctx, cooldown, record); err != nil {
		return err
	}
	s.router.Pause(channel, pause)
	return s.publishStates(ctx)
}

// Wake implements admin.ChannelDesk.
func (d channelDesk) Wake(ctx context.Context, channel string) error {
	s := d.health
	s.router.Wake(channel)
	if err := s.tell(ctx, channelhealth.Cooldown{Name: "wake " + url.QueryEscape(channel)}, cooldownRecord{Woken: channel}); err != nil {
		return err
	}
	return s.send(ctx) // the ends of this process's own cooldowns
}

// countSlots gives channels with limited jobs how many have a place, and how many wait.
func countSlots(ctx context.Context, store *slots.Store, states []router.ChannelState) error {
	var names []string
	var at []*router.Slots
	for _, state := range states {
		if state.Slots != nil {
			names, at = append(names, state.Name), append(at, state.Slots)
		}
	}
	if len(names) == 0 {
		return nil
	}
	counts, err := store.States(ctx, names)
	if err != nil {
		return fmt.Errorf("count the jobs of channels: %w", err)
	}
	for i, count := range counts {
		at[i].Taken, at[i].Line = int(count.Held), int(count.Waiting)
	}
	return nil
}
