package calls

import (
	"context"
	"fmt"

	"modelrelay/dev/bench/figures"
)

// A model that an OpenAI client names and an Anthropic upstream answers: its public name and the upstream's.
const (
	translatedModel = "gpt-translated"
	claudeModel     = "claude-sonnet-4-6"
)

// translatedChat measures short calls that an upstream of another format answers. They are compared with the calls of a
// client of the upstream's own format, on the same gateway. Both name the same model of the same upstream: a slower
// upstream lets fewer calls share a round trip to Redis, which is not a cost of the translation.
func translatedChat(ctx context.Context, b *Bench, report *figures.Report) error {
	translated, err := b.gateway(ctx)
	if err != nil {
		return err
	}
	translated.model = translatedModel
	native := translated
	native.name, native.messages = "floor", true // the column of the report
	want, err := b.warm(ctx, native, translated)
	if err != nil {
		return err
	}
	o := b.sizes
	var cpu, p50 figures.Series
	err = takeTurns(b.Options.Rounds, native, translated, func(to target) error {
		round, err := chatRound(ctx, to, want, o.Connections, o.Requests)
		if err != nil {
			return err
		}
		cpu.Add(to.name, round.cpu.Seconds()*1000/float64(o.Requests))
		p50.Add(to.name, figures.Milliseconds(figures.Quantile(round.latencies, 0.50)))
		return nil
	})
	if err != nil {
		return err
	}
	load := fmt.Sprintf("chat translated to Anthropic's format (floor: the same call untranslated), %d connections", o.Connections)
	report.Add(load, "CPU per 1,000", "s", cpu, figures.RatioAtMost(1.4))
	report.Add(load, "latency p50", "ms", p50, nil)
	return nil
}
