package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"modelrelay/api/admin"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/storage/audit"
)

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

// channelName names the one channel of a command.
type channelName struct {
	Name string `arg:"" help:"The channel's name."`
}

type channelResumeCmd struct{ channelName }

// Run ends the channel's pause.
func (c *channelResumeCmd) Run(ctx context.Context, p *Program) error {
	return p.channelVerb(ctx, "resume_channel", c.Name, nil, func(ctx context.Context, desk admin.ChannelDesk) (string, error) {
		return "not paused any more", desk.Pause(ctx, c.Name, nil)
	})
}

type channelWakeCmd struct{ channelName }

// Run ends the channel's cooldowns.
func (c *channelWakeCmd) Run(ctx context.Context, p *Program) error {
	return p.channelVerb(ctx, "wake_channel", c.Name, nil, func(ctx context.Context, desk admin.ChannelDesk) (string, error) {
		return "has no cooldowns any more", desk.Wake(ctx, c.Name)
	})
}

// channelVerb does something with a channel, notes it in the audit log and says what is so now.
func (p *Program) channelVerb(ctx context.Context, what, name string, changes []audit.Change, do func(context.Context, admin.ChannelDesk) (string, error)) error {
	return p.work(ctx, 0, func(ctx context.Context, s *Services) error {
		said, err := "", noChannel(name)
		if s.Desk.Has(name) {
			said, err = do(ctx, s.Desk)
		}
		if err := note(ctx, s.Redis, what, name, changes, err); err != nil {
			return err
		}
		return p.say(map[string]string{"channel": name, "done": said}, "%s is %s\n", providers.Shown(name), strings.Replace(said, "has ", "awake: it has ", 1))
	})
}

func noChannel(name string) error { return fmt.Errorf("the configuration has no channel %q", name) }
