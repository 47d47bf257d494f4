package main

import (
	"log/slog"

	"github.com/redis/go-redis/v9"

	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/providers"
	"modelrelay/providers/channeltest"
	"modelrelay/providers/health"
	"modelrelay/providers/pricing"
	"modelrelay/providers/router"
	"modelrelay/providers/translate"
	"modelrelay/providers/vendors"
)

// upstreams has the channels: their configuration, connections, health, and prices.
type upstreams struct {
	catalog providers.Catalog
	trust   *authorities
	router  *router.Router
	health  *health.Sharer
	prices  *pricing.List
}

// openUpstreams opens the channels of a configuration. Main's Close ends their connections.
func (m *Main) openUpstreams(cfg config.Config, client redis.UniversalClient, log *slog.Logger) *upstreams {
	u := &upstreams{trust: new(authorities), prices: pricing.NewList(nil)}
	connections := upstreamClient(cfg.Egress, u.trust.config)
	m.onClose(func() error { connections.CloseIdleConnections(); return nil })
	u.catalog = vendors.New(connections)
	monitor := health.NewMonitor(u.catalog, &cfg.Relay.Options)
	u.health = health.NewSharer(monitor, client, introduction(), log)
	u.router = router.New(u.catalog, nil, &router.Options{Health: monitor, Reaches: translate.Reaches})
	u.load(cfg)
	return u
}

// load applies the channels, aliases and prices of a configuration.
func (u *upstreams) load(cfg config.Config) {
	u.prices.Load(cfg.PriceList())
	u.trust.load(cfg.Authorities(u.catalog))
	u.router.Load(cfg.Routes(), cfg.Aliases)
}

func (u *upstreams) tester() channeltest.Tester {
	return channeltest.Tester{Channel: u.router.Channel, Vendors: u.catalog}
}
