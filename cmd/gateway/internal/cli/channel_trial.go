package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"modelrelay/api/admin"
	"modelrelay/providers"
	"modelrelay/storage/audit"
)

// mostSaid bounds what is printed of an upstream's words, in bytes.
const mostSaid = 300

type channelsTestCmd struct {
	Name   string `arg:"" optional:"" help:"The channel's name; none: each of the configuration."`
	Paid   bool   `help:"Show the price, then make the cheapest video, or a short chat, which the vendor bills."`
	Model  string `help:"Public name of the model that makes it; none: of videos the cheapest, else the first by name." placeholder:"NAME"`
	Output string `short:"o" help:"File for the video; none: the channel's name with .mp4." placeholder:"FILE"`
	Prompt string `help:"What a chat is asked; none: to say hello."`
	Stream bool   `help:"Ask for the chat as a stream."`
}

// Run tests the channels one after the other. It fails where one is not good.
func (c *channelsTestCmd) Run(ctx context.Context, p *Program) error {
	switch {
	case c.Paid && c.Name == "":
		return &UsageError{Err: errors.New("--paid: wants the name of one channel")}
	case !c.Paid && (c.Prompt != "" || c.Stream || c.Output != ""):
		return &UsageError{Err: errors.New("--prompt, --stream and --output want --paid: without it nothing is made")}
	}
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
	results := make([]admin.ChannelTested, 0, len(names))
	failed := 0
	for _, name := range names {
		tested, err := c.test(ctx, s, admin.ChannelTrial{Channel: name, Model: c.Model})
		if err == nil && c.Paid {
			tested, err = c.pay(ctx, p, s, tested)
		}
		if err != nil {
			tested = admin.ChannelTested{Object: "channel.test", Test: true, Verdict: err.Error(), Reason: err.Error()}
			tested.Channel = name
		}
		if !tested.OK {
			failed++
		}
		results = append(results, tested)
	}
	err = printList(p, results, []string{"CHANNEL", "VERDICT", "KEY", "STATUS", "MS", "SAID"}, testedRow)
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d of %d channels are not good", failed, len(results))
	}
	return err
}

// test tests one channel, and notes it in the audit log.
func (c *channelsTestCmd) test(ctx context.Context, s *Services, trial admin.ChannelTrial) (admin.ChannelTested, error) {
	tested, err := s.Desk.Try(ctx, trial)
	return tested, note(ctx, s.Redis, "test_channel", trial.Channel, []audit.Change{audit.Set("model", tested.Model), audit.Set("pay", trial.Pay)}, err)
}

// pay shows the price and makes the paid test, of a channel whose free test is good.
func (c *channelsTestCmd) pay(ctx context.Context, p *Program, s *Services, free admin.ChannelTested) (admin.ChannelTested, error) {
	if !free.OK {
		return free, nil
	}
	if free.Paid == nil { // what makes none says why
		return c.test(ctx, s, admin.ChannelTrial{Channel: c.Name, Model: c.Model, Pay: true})
	}
	fmt.Fprintf(p.Stderr, "%s makes %s\n", providers.Shown(c.Name), paidText(free.Paid))
	trial := admin.ChannelTrial{Channel: c.Name, Model: free.Paid.Model, Pay: true, Prompt: c.Prompt, Stream: c.Stream}
	if free.Paid.Kind != "video" {
		return c.test(ctx, s, trial)
	}
	trial.Told = func(job string) { fmt.Fprintf(p.Stderr, "job %s\n", providers.Shown(job)) }
	return c.film(ctx, p, s, trial)
}

// film makes the video into a file, which is not there before and not left where there is no video.
func (c *channelsTestCmd) film(ctx context.Context, p *Program, s *Services, trial admin.ChannelTrial) (tested admin.ChannelTested, err error) {
	name := c.Output
	if name == "" {
		name = fileName(c.Name) + ".mp4"
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // a video, at the operator's own path
	if err != nil {
		return tested, fmt.Errorf("--output: %w", err)
	}
	trial.To = file
	tested, err = c.test(ctx, s, trial)
	if err = errors.Join(err, file.Close()); err != nil || !tested.OK {
		return tested, errors.Join(err, os.Remove(name))
	}
	fmt.Fprintf(p.Stderr, "%s  %d bytes\n", name, tested.Paid.Bytes)
	return tested, nil
}

// fileName makes a channel's name one of a file.
func fileName(channel string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, strings.TrimLeft(channel, "."))
}

// paidText says what a paid test makes, and for how much.
func paidText(paid *admin.ChannelPaid) string {
	words := []string{"a", paid.Kind}
	for _, word := range []string{paid.Resolution, paid.Size} {
		if word != "" {
			words = append(words, word)
		}
	}
	if paid.Seconds != "" {
		words = append(words, paid.Seconds+" s")
	}
	words = append(words, "with", providers.Shown(paid.Model)+":")
	if paid.Price == nil {
		return strings.Join(words, " ") + " no price in the configuration; the vendor bills it"
	}
	return strings.Join(words, " ") + " " + paid.Price.String() + " by the prices of the configuration"
}

func testedRow(r admin.ChannelTested) []string {
	verdict := "good"
	if !r.OK {
		verdict = "failed"
	}
	said := strings.TrimSpace(r.Verdict + " " + r.Said)
	if r.Paid != nil && !r.Paid.Made && r.OK {
		said += "; --paid makes " + paidText(r.Paid)
	}
	return []string{r.Channel, verdict, r.Key, count(r.Status), strconv.Itoa(int(r.Took)), providers.Cut(strings.Join(strings.Fields(said), " "), mostSaid)}
}
