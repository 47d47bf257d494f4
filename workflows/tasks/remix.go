package tasks

import (
	"context"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
)

// source finds the job that a request wants to remix, puts its ticket and model into the request, and returns the
// channel and key that hold it; nil for a request that remixes nothing. Faults: NotFound; Invalid for
// a task that has not completed or whose vendor cannot remix.
func (c *creation) source(ctx context.Context, req *providers.VideoRequest) (*activities.Assignment, error) {
	if req.RemixOf == "" {
		return nil, nil
	}
	task, err := c.Find(ctx, req.RemixOf, c.in.TokenID)
	switch {
	case err != nil:
		return nil, err
	case task.State != workflows.Completed || task.Job == nil:
		return nil, &providers.Fault{
			Kind: providers.Invalid, Param: "video_id", Accepted: providers.NotAccepted, Message: "Only a completed video can be remixed.",
		}
	}
	to := task.Job.Assignment
	if _, ok := c.opts.Catalog[to.Vendor].Video.(providers.Remixer); !ok {
		return nil, &providers.Fault{
			Kind: providers.Invalid, Param: "video_id", Accepted: providers.NotAccepted, Message: "The upstream of this video cannot remix it.",
		}
	}
	req.Model, req.Asked, req.Source = task.Request.Model, task.Request.Asked, &task.Job.Ticket
	return &to, nil
}

// takeOver gives a remix what it has of its source.
func takeOver(req *providers.VideoRequest, from providers.VideoRequest) {
	req.Model, req.Asked, req.Seconds, req.Size, req.Width, req.Height = from.Model, from.Asked, from.Seconds, from.Size, from.Width, from.Height
}

// askedHash tells requests apart by what their callers said, which is less than the whole request where that is a remix.
func askedHash(req providers.VideoRequest) (string, error) {
	if req.RemixOf != "" {
		takeOver(&req, providers.VideoRequest{})
	}
	return requestHash(req)
}
