package calls

import (
	"context"
	"fmt"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/stage"
)

// target is a process that a load is sent to.
type target struct {
	name, addr  string
	prefix, key string // of the path, and of the Authorization header
	// model replaces the load's own model; "": it does not.
	model string
	// messages: the chats are in Anthropic's format.
	messages bool
	pid      int
}

// pair starts a floor and a gateway.
func (b *Bench) pair(ctx context.Context) (floor, gateway target, err error) {
	addr, err := stage.FreeAddress()
	if err != nil {
		return target{}, target{}, err
	}
	proxy, err := b.Start(ctx, &stage.Child{Name: "floor", Addr: addr}, stage.Connects, b.FloorBinary(), "--listen", addr, "--upstream",
		b.Upstream.Addr)
	if err != nil {
		return target{}, target{}, err
	}
	floor = target{name: "floor", addr: proxy.Addr, prefix: "/openai", key: stage.UpstreamKey, pid: proxy.PID()}
	gateway, err = b.gateway(ctx)
	return floor, gateway, err
}

// gateway starts a gateway without a worker: relayed calls need none.
func (b *Bench) gateway(ctx context.Context) (target, error) {
	addr, err := stage.FreeAddress()
	if err != nil {
		return target{}, err
	}
	config, err := b.WriteConfig("gateway.yaml", b.config(addr))
	if err != nil {
		return target{}, err
	}
	relay, err := b.Start(ctx, &stage.Child{Name: figures.Gateway, Addr: addr, Env: b.collector.env()}, b.Answers("/healthz"),
		b.GatewayBinary(), "serve", "--worker=false", "--config", config)
	if err != nil {
		return target{}, err
	}
	return target{name: figures.Gateway, addr: relay.Addr, key: stage.ClientKey, pid: relay.PID()}, nil
}

// direct is the upstream without a proxy.
func (b *Bench) direct() target {
	return target{name: "upstream", addr: b.Upstream.Addr, prefix: "/openai", key: stage.UpstreamKey, pid: b.Upstream.PID()}
}

// config is the configuration of a gateway with every feature that costs time: a log line per request, metrics, a token
// with all limits, a budget and permissions, so that every call asks Redis, prices, the ledger and the log of calls. The
// environment turns tracing on.
func (b *Bench) config(listen string) []byte {
	return fmt.Appendf(nil, `listen: %s
metrics: {listen: 127.0.0.1:0}
log: {level: info, format: json}
redis: {url: redis://%s/0}
temporal: {address: %s}
archive: {endpoint: http://%s, bucket: videos, access_key: none, secret_key: none-at-all}
tokens:
  - name: bench
    key: %s
    models: ["gpt-*"]
    networks: [127.0.0.0/8]
    operations: [relay]
    requests_per_minute: 1000000000
    tokens_per_minute: 1000000000000
    concurrency: 100000
    budget: 1000000000
prices:
  %s: {input: 0.15, cached_input: 0.075, output: 0.6}
  %s: {input: 0.15, output: 0.6}
  %s: {input: 0.15, cached_input: 0.075, output: 0.6}
channels:
  - {name: bench, vendor: openai, base_url: http://%s/openai/v1, keys: [%s], models: {"*": }}
  - {name: translated, vendor: anthropic, priority: 1, base_url: http://%s/anthropic, keys: [%s], models: {%s: %s}}
`, listen, b.Redis.Addr, stage.Nowhere, stage.Nowhere, stage.ClientKey, chatModel, streamModel, translatedModel,
		b.Upstream.Addr, stage.UpstreamKey, b.Upstream.Addr, stage.UpstreamKey, translatedModel, claudeModel)
}
