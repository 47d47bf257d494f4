package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"modelrelay/providers/health"
)

// Channels is gateway channels.
type Channels struct {
	List   channelsListCmd  `cmd:"" default:"withargs" help:"Show the state of the channels and their keys."`
	Pause  channelPauseCmd  `cmd:"" help:"Exclude a channel from routing for a time; its video jobs continue. Takes effect within a second."`
	Resume channelResumeCmd `cmd:"" help:"End a channel's pause."`
	Wake   channelWakeCmd   `cmd:"" help:"End the cooldowns of a channel, its models and keys."`
	Test   channelsTestCmd  `cmd:"" help:"Send a free request to each channel, or to one, and report whether its address, key and permissions work."`
}

type channelsListCmd struct {
	remote

	Q      string `help:"Channels whose name contains this text." placeholder:"TEXT"`
	Limit  int    `help:"List at most this many channels; 0: all." default:"0"`
	Models bool   `help:"Show the inputs of their video models."`
}

// Run shows the health of channels in the serving processes.
func (c *channelsListCmd) Run(ctx context.Context, p *Program) error {
	list, channels, err := askPages[health.ChannelState](ctx, p, "/admin/channels", filters("q", c.Q), c.Limit)
	if err != nil {
		return err
	}
	return p.show(list, func() error {
		if c.Models {
			return printVideoModels(p, channels)
		}
		return printChannels(p, channels)
	})
}

// printVideoModels shows what the channels' models accept in a video request. "any" is a field that is not checked.
func printVideoModels(p *Program, states []health.ChannelState) error {
	words := func(list []string) string {
		if list == nil {
			return "any"
		}
		return strings.Join(list, " ")
	}
	head := []string{"CHANNEL", "MODEL", "UPSTREAM", "SECONDS", "SIZES", "RATIOS", "RESOLUTIONS", "INPUTS", "AUDIO", "N"}
	var rows [][]string
	for _, state := range states {
		for _, video := range state.Videos {
			table := video.Video
			inputs := make([]string, 0, len(table.Inputs))
			for _, input := range table.Inputs {
				text := input.Name
				if input.Max > 1 {
					text += "×" + strconv.Itoa(input.Max)
				}
				inputs = append(inputs, text)
			}
			n := "any"
			if table.N > 0 {
				n = strconv.Itoa(table.N)
			}
			rows = append(rows, []string{
				state.Name, video.Model, video.Upstream, words(table.Seconds), words(table.Sizes), words(table.AspectRatios), words(table.Resolutions),
				strings.Join(inputs, " "), table.Audio, n,
			})
		}
	}
	return printTable(p.Stdout, head, rows)
}

func printChannels(p *Program, states []health.ChannelState) error {
	head := []string{"CHANNEL", "VENDOR", "PRIORITY", "WEIGHT", "STATE", "COOLDOWN LEFT", "IN FLIGHT", "CALLS/MIN", "FAULTS/MIN", "LAST FAULT"}
	var rows [][]string
	unseen := 0
	for _, state := range states {
		if state.Processes == 0 {
			unseen++
			if state.State == health.StateClosed {
				state.State = "unknown"
			}
		}
		rows = append(rows, append([]string{state.Name, state.Vendor, strconv.Itoa(state.Priority), strconv.Itoa(state.Weight)},
			healthCells(state.TargetState)...))
		for _, model := range state.Models {
			rows = append(rows, append([]string{"  model " + model.Model, "", "", ""},
				healthCells(health.TargetState{CircuitState: model.CircuitState})...))
		}
		for i, key := range state.Keys {
			if state.Processes == 0 {
				key.State = ""
			}
			rows = append(rows, append([]string{"  " + strconv.Itoa(i+1) + ". key " + key.Fingerprint, "", "", ""}, healthCells(key.TargetState)...))
			for _, model := range key.Models {
				rows = append(rows, append([]string{"       for " + model.Model, "", "", ""},
					healthCells(health.TargetState{CircuitState: model.CircuitState})...))
			}
		}
	}
	if err := printTable(p.Stdout, head, rows); err != nil {
		return err
	}
	if unseen > 0 {
		fmt.Fprintf(p.Stderr, "No running gateway has reported %d of these channels recently.\n", unseen)
	}
	return nil
}

func healthCells(h health.TargetState) []string {
	left := ""
	if h.CooldownLeft > 0 {
		left = time.Duration(h.CooldownLeft * float64(time.Second)).Round(time.Second).String()
	}
	return []string{
		stateText(h.CircuitState), left, count(h.InFlight), count(h.CallsPerMinute), count(h.FaultsPerMinute),
		faultText(h.LastFault),
	}
}

func stateText(c health.CircuitState) string {
	switch {
	case c.Slow && c.State == health.StateClosed:
		return c.State + " (slow, others first)"
	case c.Tokens == 1:
		return c.State + " (open for 1 token)"
	case c.Tokens > 1:
		return c.State + " (open for " + strconv.Itoa(c.Tokens) + " tokens)"
	}
	return c.State
}

func faultText(fault *health.LastFault) string {
	if fault == nil {
		return ""
	}
	words := []string{string(fault.Kind)}
	if fault.Key != "" {
		words = append(words, "key "+fault.Key)
	}
	if fault.Status != 0 {
		words = append(words, strconv.Itoa(fault.Status))
	}
	if fault.Code != "" {
		words = append(words, fault.Code)
	}
	return strings.Join(words, " ") + ", " + time.Since(fault.At).Round(time.Second).String() + " ago"
}
