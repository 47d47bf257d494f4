package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/console/inprocess"
	"modelrelay/api/operator"
	"modelrelay/providers"
	"modelrelay/providers/health"
)

type channelPauseCmd struct {
	channelName

	For    time.Duration `help:"Duration of the pause, such as 30m or 8h; at most 30 days." default:"1h"`
	Reason string        `help:"Reason for the other operators."`
}

// Run pauses the channel.
func (c *channelPauseCmd) Run(ctx context.Context, p *Program) error {
	if c.For < time.Minute || c.For > health.MaxPause {
		return &UsageError{Err: errors.New("--for: must be 1m to 720h")}
	}
	body := operator.ChannelPause{Minutes: int(c.For.Minutes()), Reason: c.Reason}
	return p.channelVerb(ctx, c.Name, "pause", body,
		func(state health.ChannelState) string { return "paused until " + moment(state.Pause.Until) })
}

type channelName struct {
	remote

	Name string `arg:"" help:"The channel's name."`
}

type channelResumeCmd struct{ channelName }

// Run ends the channel's pause.
func (c *channelResumeCmd) Run(ctx context.Context, p *Program) error {
	return p.channelVerb(ctx, c.Name, "resume", nil, func(health.ChannelState) string { return "not paused any more" })
}

type channelWakeCmd struct{ channelName }

// Run ends the channel's cooldowns.
func (c *channelWakeCmd) Run(ctx context.Context, p *Program) error {
	return p.channelVerb(ctx, c.Name, "wake", nil, func(health.ChannelState) string { return "awake: its cooldowns have ended" })
}

// channelVerb calls an operation on a channel, and prints the state that done reads from the answer.
func (p *Program) channelVerb(ctx context.Context, name, verb string, body any, done func(health.ChannelState) string) error {
	var state health.ChannelState
	if err := p.call(ctx, http.MethodPost, channelPath(name, verb), body, &state); err != nil {
		return err
	}
	return p.sentence(map[string]string{"channel": name, "done": done(state)}, "%s is %s\n", providers.Shown(name), done(state))
}

func channelPath(name, verb string) string {
	return "/admin/channels/" + inprocess.Segment(name) + "/" + verb
}

type channelsTestCmd struct {
	remote

	Name string `arg:"" optional:"" help:"The channel's name; none: every channel of the configuration."`
}

// Run tests the channels one after the other. It fails if one of the tests fails.
func (c *channelsTestCmd) Run(ctx context.Context, p *Program) error {
	names := []string{c.Name}
	if c.Name == "" {
		_, channels, err := askPages[health.ChannelState](ctx, p, "/admin/channels", url.Values{}, 0)
		if err != nil {
			return err
		}
		names = names[:0]
		for _, channel := range channels {
			names = append(names, channel.Name)
		}
	}
	results := make([]operator.ChannelTested, len(names))
	failed := 0
	for i, name := range names {
		err := p.call(ctx, http.MethodPost, channelPath(name, "test"), nil, &results[i])
		switch {
		case err != nil && c.Name != "":
			return err
		case err != nil:
			results[i].Object, results[i].Channel, results[i].Verdict = "channel.test", name, err.Error()
		}
		if !results[i].OK {
			failed++
		}
	}
	err := printList(p, results, []string{"CHANNEL", "VERDICT", "KEY", "STATUS", "MS", "SAID"}, testedRow)
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d of %d channels failed the test", failed, len(results))
	}
	return err
}

const mostVerdict = 300

func testedRow(r operator.ChannelTested) []string {
	good := "good"
	if !r.OK {
		good = "failed"
	}
	return []string{
		r.Channel, good, r.Key, count(r.Status), strconv.Itoa(int(r.Took)),
		providers.Cut(strings.Join(strings.Fields(r.Verdict), " "), mostVerdict),
	}
}
