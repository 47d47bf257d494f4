package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/admin"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/storage/audit"
)

// mostSaid bounds what is printed of an upstream's words, in bytes.
const mostSaid = 300

type channelPauseCmd struct {
	Name   string        `arg:"" help:"The channel's name."`
	For    time.Duration `help:"How long, such as 30m or 8h; 30 days at most." default:"1h"`
	Reason string        `help:"What other operators read."`
}

// Run pauses the channel.
func (c *channelPauseCmd) Run(ctx context.Context, p *Program) error {
	if c.For < time.Minute || c.For > router.PauseMost {
		return &UsageError{Err: errors.New("--for: wants 1m to 720h")}
	}
	pause := &router.Pause{Until: time.Now().Add(c.For).UTC(), By: string(audit.CLI), Reason: c.Reason}
	changes := []audit.Change{audit.Set("minutes", int(c.For.Minutes())), audit.Set("reason", c.Reason)}
	return p.channelVerb(ctx, "pause_channel", c.Name, changes, func(ctx context.Context, desk admin.ChannelDesk) (string, error) {
		return "paused until " + moment(pause.Until), desk.Pause(ctx, c.Name, pause)
	})
}

type channelResumeCmd struct {
	Name string `arg:"" help:"The channel's name."`
}

// Run ends the channel's pause.
func (c *channelResumeCmd) Run(ctx context.Context, p *Program) error {
	return p.channelVerb(ctx, "resume_channel", c.Name, nil, func(ctx context.Context, desk admin.ChannelDesk) (string, error) {
		return "not paused any more", desk.Pause(ctx, c.Name, nil)
	})
}

type channelWakeCmd struct {
	Name string `arg:"" help:"The channel's name."`
}

// Run ends the channel's cooldowns.
func (c *channelWakeCmd) Run(ctx context.Context, p *Program) error {
	return p.channelVerb(ctx, "wake_channel", c.Name, nil, func(ctx context.Context, desk admin.ChannelDesk) (string, error) {
		return "has no cooldowns any more", desk.Wake(ctx, c.Name)
	})
}

// channelVerb does something with a channel, notes it in the audit log and says what is so now.
func (p *Program) channelVerb(ctx context.Context, what, name string, changes []audit.Change, do func(context.Context, admin.ChannelDesk) (string, error)) error {
	s, err := p.Open()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, operatorTimeout)
	defer cancel()
	said := ""
	if s.Desk.Has(name) {
		said, err = do(ctx, s.Desk)
	} else {
		err = noChannel(name)
	}
	if err := note(ctx, s.Redis, what, name, changes, err); err != nil {
		return err
	}
	if p.JSON {
		return printJSON(p.Stdout, map[string]string{"channel": name, "done": said})
	}
	_, err = fmt.Fprintf(p.Stdout, "%s is %s\n", providers.Shown(name), strings.Replace(said, "has ", "awake: it has ", 1))
	return err
}

func noChannel(name string) error { return fmt.Errorf("the configuration has no channel %q", name) }

type channelsTestCmd struct {
	Name   string `arg:"" optional:"" help:"The channel's name; none: each of the configuration."`
	Model  string `help:"Public name of one of its models; none: the first by name." placeholder:"NAME"`
	Prompt string `help:"What the model is asked; none: to say hello."`
	Stream bool   `help:"Ask for a stream."`
}

// Run tests the channels one after the other. It fails where one did not answer.
func (c *channelsTestCmd) Run(ctx context.Context, p *Program) error {
	s, err := p.Open()
	if err != nil {
		return err
	}
	names := []string{c.Name}
	if c.Name == "" {
		names = names[:0]
		for _, channel := range s.Config.Channels {
			names = append(names, channel.Name)
		}
	} else if !s.Desk.Has(c.Name) {
		return noChannel(c.Name)
	}
	trial := admin.ChannelTrial{Model: c.Model, Prompt: c.Prompt, Stream: c.Stream}
	var results []admin.ChannelTested
	failed := 0
	for _, trial.Channel = range names {
		tested, err := s.Desk.Try(ctx, trial)
		err = note(ctx, s.Redis, "test_channel", trial.Channel, []audit.Change{audit.Set("model", tested.Model)}, err)
		if err != nil {
			tested = admin.ChannelTested{Object: "channel.test", Test: true, Channel: trial.Channel, Reason: err.Error()}
		}
		if !tested.OK {
			failed++
		}
		results = append(results, tested)
	}
	if p.JSON {
		err = printJSON(p.Stdout, results)
	} else {
		rows := make([][]string, len(results))
		for i, r := range results {
			verdict := "good"
			if !r.OK {
				verdict = "failed"
			}
			said := r.Said
			if r.Reason != "" && !r.OK {
				said = strings.TrimSpace(r.Reason + " " + said)
			}
			rows[i] = []string{r.Channel, verdict, r.Model, r.Key, count(r.Status), strconv.Itoa(int(r.FirstByte)), providers.Cut(strings.Join(strings.Fields(said), " "), mostSaid)}
		}
		err = printTable(p.Stdout, []string{"CHANNEL", "VERDICT", "MODEL", "KEY", "STATUS", "FIRST BYTE MS", "SAID"}, rows)
	}
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d of %d channels did not answer", failed, len(results))
	}
	return err
}
