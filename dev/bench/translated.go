package bench

import (
	"context"
	"fmt"
	"math"
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
func (s *stage) translations(ctx context.Context) (native, translated target, err error) {
	_, gateway, err := s.pair(ctx)
	if err != nil {
		return native, translated, err
	}
	native, translated = gateway, gateway
	native.name = "floor" // of the report's columns
	translated.model, translated.streamModel = translatedModel, translatedStream
	return native, translated, nil
}

// translatedChat measures short calls that an upstream of another format answers, beside the same calls untranslated.
func translatedChat(ctx context.Context, s *stage, report *Report) error {
	native, translated, err := s.translations(ctx)
	if err != nil {
		return err
	}
	// Both ask the same model of the same upstream: a slower upstream lets fewer calls share a round trip to Redis, which is no
	// cost of the translation.
	native.messages, native.model = true, translatedModel
	want, err := s.expectedChat(ctx)
	if err != nil {
		return err
	}
	o := s.options
	for _, to := range []target{native, translated} {
		if _, err := chatRound(ctx, to, want, o.Connections, max(o.Connections, o.Requests/warmUp)); err != nil {
			return err
		}
	}
	var cpu, p50 series
	err = takeTurns(o.Rounds, native, translated, func(to target) error {
		round, err := chatRound(ctx, to, want, o.Connections, o.Requests)
		if err != nil {
			return err
		}
		cpu.add(to, round.cpu.Seconds()*1000/float64(o.Requests))
		p50.add(to, milliseconds(quantile(round.latencies, 0.50)))
		return nil
	})
	if err != nil {
		return err
	}
	load := fmt.Sprintf("chat translated to Anthropic's format, beside one in that format, %d connections", o.Connections)
	report.add(load, "CPU per 1,000", "s", cpu, ratioAtMost(1.4))
	report.add(load, "latency p50", "ms", p50, nil)
	return nil
}

// translatedStreams measures event streams of an upstream of another format, beside the same streams untranslated.
func translatedStreams(ctx context.Context, s *stage, report *Report) error {
	native, translated, err := s.translations(ctx)
	if err != nil {
		return err
	}
	n := s.options.Streams
	figures, broken, err := s.streamRounds(ctx, n, native, translated)
	if err != nil {
		return err
	}
	load := fmt.Sprintf("%d streams translated from Anthropic's format, beside such that are not", n)
	report.add(load, "CPU per 1,000", "s", figures.cpu, ratioAtMost(1.25))
	report.add(load, "streams cut", "", figures.cut, atMost(0))
	most := figures.resident.reduce(math.Max)
	report.add(load, "most RSS while open", "MB", most, atMost(120)) // one process, both of them
	return broken
}
