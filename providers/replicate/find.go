package replicate

import (
	"cmp"
	"context"
	"hash/fnv"
	"net/url"
	"slices"
	"strconv"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of the list: replicate.com/docs/reference/http#predictions.list. It has the newest first, 100 on a page, each with its input
// until an hour after its end, and the URL of the next page.

const mostPages = 10

// marked sets a seed for a request without one. It is the same for each try of the attempt and different for every other attempt, and the
// vendor's list shows it. marked reports false if the model has no known seed, or if the caller chose one, which another call may have.
func marked(to providers.Target, req providers.VideoRequest) (providers.VideoRequest, bool) {
	model, known := lookUp(to.Model)
	fields := to.Channel.FieldsOf(to.Model)
	own, err := req.Parameters()
	switch {
	case !known && fields["seed"].Name == "", !fields.Open(model.Model).Seed:
		return req, false
	case err != nil, req.Seed != nil, own[seedName(fields)] != nil, req.IdempotencyKey == "":
		return req, false
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(req.IdempotencyKey)) // never fails
	seed := int64(sum.Sum32() >> 1)              // models take 31 bits
	req.Seed = &seed
	return req, true
}

func seedName(fields providers.VideoFields) string { return cmp.Or(fields["seed"].Name, "seed") }

// Find searches the newest predictions for the one with the attempt's seed and prompt. A prediction that is not listed may still exist.
func (v *Videos) Find(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	req, ok := marked(to, req)
	if !ok {
		return providers.Ticket{}, &providers.Fault{
			Kind: providers.Upstream, Message: "The upstream's list does not distinguish this job from an equal one.", Err: providers.ErrNoLookup,
		}
	}
	found, err := v.find(ctx, to, req)
	switch {
	case err != nil:
		return providers.Ticket{}, upstream.Undecided(err)
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return providers.Ticket{}, providers.Faultf(providers.Upstream, "The upstream lists several such jobs.")
	}
	return providers.Ticket{}, providers.Faultf(providers.NotFound, "The upstream lists no such job.")
}

func (v *Videos) find(ctx context.Context, to providers.Target, req providers.VideoRequest) (found []providers.Ticket, err error) {
	fields := to.Channel.FieldsOf(to.Model)
	path := "/predictions"
	for range mostPages {
		page, err := v.Jobs.Read(ctx, to, upstream.JobRequest{Path: path})
		switch {
		case err != nil:
			return nil, err
		case !page.Has("results"):
			return nil, upstream.BrokenAnswer("no list of predictions", nil)
		}
		for one := range page.All("results") {
			id, input := string(one.Get("id")), one.At("input")
			seed, prompt := input.At(seedName(fields)), input.Get(cmp.Or(fields["prompt"].Name, "prompt"))
			same := func(t providers.Ticket) bool { return t.Job == id } // pages shift while predictions are added
			if string(seed) == strconv.FormatInt(*req.Seed, 10) && string(prompt) == req.Prompt && id != "" && !slices.ContainsFunc(found, same) {
				found = append(found, providers.Ticket{Job: id})
			}
		}
		next, _ := url.Parse(string(page.Get("next"))) // "": the list ends here
		if next == nil || next.RawQuery == "" {
			break
		}
		path = "/predictions?" + next.RawQuery // the address itself is not followed with the key
	}
	return found, nil
}
