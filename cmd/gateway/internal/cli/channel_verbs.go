package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"modelrelay/api/admin"
	"modelrelay/api/console/inprocess"
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
	return p.work(ctx, func(ctx context.Context, s *Services) error {
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

type channelVendorsCmd struct{}

// Run lists the vendors.
func (channelVendorsCmd) Run(ctx context.Context, p *Program) error {
	var list page
	if err := p.ask(ctx, "/admin/vendors", nil, &list); err != nil {
		return err
	}
	return printRows(p, list.Data, []string{"VENDOR", "FOR", "BASE URL"}, func(v admin.ChannelVendor) []string {
		return []string{v.Name, strings.Join(v.Operations, " "), orDash(v.BaseURL)}
	})
}

type channelDraftCmd struct {
	Name     string   `arg:"" help:"The channel's name."`
	Vendor   string   `required:"" help:"Code for this kind of upstream: gateway channels vendors." placeholder:"NAME"`
	BaseURL  string   `name:"base-url" help:"Address as that vendor's own SDK takes it; none: the vendor's own, where it has one." placeholder:"URL"`
	Models   []string `required:"" help:"Public names with commas between; public=upstream where the upstream has another name." placeholder:"NAMES"`
	Groups   []string `help:"Token groups that may use it, with commas between; none: default." placeholder:"NAMES"`
	Priority int      `help:"Higher first."`
	Weight   int      `help:"Share among channels of one priority." default:"1"`
	MaxJobs  int      `help:"Video jobs in flight at this upstream; 0: no limit."`
	MaxCalls int      `help:"Calls in flight at this upstream, of each process; 0: no limit."`
	Variable string   `help:"Environment variable that holds the key; none: one that is made of the name." placeholder:"NAME"`
}

// Run prints the section channels with the entry, and beside it what an operator may not want of it.
func (c *channelDraftCmd) Run(ctx context.Context, p *Program) error {
	models, err := inprocess.Models(c.Models)
	if err != nil {
		return &UsageError{Err: fmt.Errorf("--models: %w", err)}
	}
	if len(models) == 0 {
		return &UsageError{Err: errors.New("--models: wants at least one")}
	}
	var document json.RawMessage
	err = p.call(ctx, http.MethodPost, "/admin/channels/draft", admin.ChannelDraft{
		Name: c.Name, Vendor: c.Vendor, BaseURL: c.BaseURL, Models: models, Groups: c.Groups, Priority: c.Priority, Weight: &c.Weight,
		MaxJobs: c.MaxJobs, MaxCalls: c.MaxCalls, Variable: c.Variable,
	}, &document)
	if err != nil {
		return err
	}
	if p.JSON {
		return printJSON(p.Stdout, document)
	}
	var draft admin.ChannelDrafted
	if err := json.Unmarshal(document, &draft); err != nil {
		return fmt.Errorf("read the draft: %w", err)
	}
	for _, warning := range draft.Warnings {
		fmt.Fprintln(p.Stderr, warning.Message)
	}
	fmt.Fprintf(p.Stderr, "%s holds the key: a file that names it is refused where it is not set.\n", draft.Variable)
	_, err = fmt.Fprint(p.Stdout, draft.YAML)
	return err
}
