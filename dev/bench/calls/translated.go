package calls

import (
	"context"
	"fmt"
	"math"

	"modelrelay/dev/bench/figures"
)

// Models that an OpenAI client asks for and an Anthropic upstream answers, by the public name and the upstream's. Its streams
// have as many words, at the same pace, as those of the untranslated load.
const (
	translatedModel  = "gpt-translated"
	translatedStream = "gpt-translated-stream"
	claudeModel      = "claude-sonnet-4-6"
	claudeStream     = "claude-sonnet-4-6-100chunks-20ms"
)

// translations are the same gateway twice: asked for a model of the client's own format, which is the floor here, and for
// one of another format.
func (b *Bench) translations(ctx context.Context) (native, translated target, err error) {
	_, gateway, err := b.pair(ctx)
	if err != nil {
		return native, translated, err
	}
	native, translated = gateway, gateway
	native.name = "floor" // of the report's columns
	translated.model, translated.streamModel = translatedModel, translatedStream
	return native, translated, nil
}

// translatedChat measures short calls that an upstream of another format answers, beside the same calls untranslated.
func translatedChat(ctx context.Context, b *Bench, report *figures.Report) error {
	native, translated, err := b.translations(ctx)
	if err != nil {
		return err
	}
	// Both ask the same model of the same upstream: a slower upstream lets fewer calls share a round trip to Redis, which is no
	// cost of the translation.
	native.messages, native.model = true, translatedModel
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
	load := fmt.Sprintf("chat translated to Anthropic's format, beside one in that format, %d connections", o.Connections)
	report.Add(load, "CPU per 1,000", "s", cpu, figures.RatioAtMost(1.4))
	report.Add(load, "latency p50", "ms", p50, nil)
	return nil
}

// translatedStreams measures event streams of an upstream of another format, beside the same streams untranslated.
func translatedStreams(ctx context.Context, b *Bench, report *figures.Report) error {
	native, translated, err := b.translations(ctx)
	if err != nil {
		return err
	}
	n := b.sizes.Streams
	got, broken, err := b.streamRounds(ctx, b.Options.Rounds, n, native, translated)
	if err != nil {
		return err
	}
	load := fmt.Sprintf("%d streams translated from Anthropic's format, beside such that are not", n)
	report.Add(load, "CPU per 1,000", "s", got.cpu, figures.RatioAtMost(1.25))
	report.Add(load, "streams cut", "", got.cut, figures.AtMost(0))
	most := got.resident.Reduce(math.Max)
	report.Add(load, "most RSS while open", "MB", most, figures.AtMost(120)) // one process, both of them
	return broken
}
