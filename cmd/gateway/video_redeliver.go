package main

import (
	"context"
	"errors"
	"time"

	"modelrelay/workflows"
)

// videoRedeliverCmd works on the task engine directly.
type videoRedeliverCmd struct {
	ID   string        `arg:"" help:"Task id."`
	Wait time.Duration `help:"How long to wait for the receiver; the delivery goes on without this command." default:"30s"`
}

// Run starts the delivery and shows how far it got. It fails when the event was not delivered for good.
func (c *videoRedeliverCmd) Run(ctx context.Context, m *Main, g *globals) error {
	cfg, err := m.loadConfig(g)
	if err != nil {
		return err
	}
	p, err := m.wire(cfg)
	if err != nil {
		return err
	}
	notice, err := p.tasks().Redeliver(ctx, c.ID, c.Wait)
	if err != nil {
		return err
	}
	if g.JSON {
		err = printJSON(m.Stdout, notice)
	} else {
		err = printFields(m.Stdout, noticeFields(notice))
	}
	if err == nil && notice.State == workflows.PhaseUndelivered {
		return errors.New("not delivered: " + notice.Delivery.Reason)
	}
	return err
}

// noticeFields is a delivery for people.
func noticeFields(n workflows.Notice) fields {
	return fields{
		{"workflow", n.WorkflowID},
		{"event", n.EventID + " " + n.Type},
		{"state", string(n.State)},
		{"receiver", n.Delivery.Host},
		{"last status", count(n.Delivery.Status)},
		{"tries", count(n.Delivery.Tries)},
		{"reason", n.Delivery.Reason},
		{"next try", moment(n.Delivery.Next)},
	}
}
