package calls

import (
	"context"
	"fmt"

	"modelrelay/dev/bench/figures"
)

// logTurns is into how many turns a round of callLog is cut: what is looked for is a hundredth of a call, which one turn in a
// machine's good moment and one in a bad hide.
const logTurns = 3

// callLog measures what the log of calls costs: short calls of a gateway that writes it beside one that does not, which stands
// in the floor's column.
func callLog(ctx context.Context, b *Bench, report *figures.Report) error {
	without, err := b.gateway(ctx, "unlogged.yaml", "calls: {recent: 0}\n")
	if err != nil {
		return err
	}
	without.name = "without"
	with, err := b.gateway(ctx, "gateway.yaml", "")
	if err != nil {
		return err
	}
	want, err := b.warm(ctx, without, with)
	if err != nil {
		return err
	}
	var cpu, p50 figures.Series
	requests := max(1, b.sizes.Requests/logTurns)
	err = takeTurns(logTurns*b.Options.Rounds, without, with, func(to target) error {
		round, err := chatRound(ctx, to, want, b.sizes.Connections, requests)
		if err != nil {
			return err
		}
		cpu.Add(to.name, round.cpu.Seconds()*1000/float64(requests))
		p50.Add(to.name, figures.Milliseconds(figures.Quantile(round.latencies, 0.50)))
		return nil
	})
	if err != nil {
		return err
	}
	load := fmt.Sprintf("chat with the log of calls, beside a gateway without, %d connections", b.sizes.Connections)
	report.Add(load, "CPU per 1,000", "s", cpu, figures.RatioAtMost(1.02))
	report.Add(load, "latency p50", "ms", p50, nil)
	return nil
}
