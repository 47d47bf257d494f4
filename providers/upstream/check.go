package upstream

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"modelrelay/providers"
)

const (
	// NoJob is an id in the form of many vendors' ids. No job has it.
	NoJob = "00000000-0000-4000-8000-000000000000"
	// maxLookups bounds how many models that are missing from the list a check looks up one by one. Lists contain no aliases.
	maxLookups = 10
	// What a check has read.
	askedJob, askedModels = "a job that nobody has made", "the list of models"
)

// Free returns the answer of a free GET. If that is not a JSON object, the fault states that the address is not the vendor's.
func (j *Jobs) Free(ctx context.Context, to providers.Target, path string) ([]byte, error) {
	answer, err := j.Do(ctx, to, JobRequest{Path: path})
	if err != nil {
		return nil, err
	}
	if !isObject(answer.Body) {
		return nil, notVendor(reply(answer.Status, answer.Header, nil))
	}
	return answer.Body, nil
}

func isObject(body []byte) bool {
	_, err := Decode(body)
	return err == nil
}

func notVendor(reply *providers.Reply) *providers.Fault {
	return &providers.Fault{
		Kind: providers.Upstream, Message: "The server at the address does not have this vendor's API.", Blame: providers.BlameChannel,
		Malformed: true, Upstream: reply,
	}
}

// LookedUp interprets the error of a look-up of NoJob for a check of address and key. forgotten reports whether an error is the
// vendor's own code for an unknown job; nil: the status shows it. The error must be JSON, because any web server answers 404.
func LookedUp(err error, forgotten func(error) bool) (providers.Checked, error) {
	checked := providers.Checked{Subject: askedJob}
	var fault *providers.Fault
	answered := errors.As(err, &fault) && fault.Upstream != nil
	unknown := Forgotten(err) || forgotten != nil && forgotten(err) || answered &&
		(fault.Kind == providers.NotFound || fault.Kind == providers.Invalid)
	switch {
	case err != nil && !unknown:
		return checked, err
	case answered && !isObject(fault.Upstream.Body):
		return checked, notVendor(fault.Upstream)
	}
	return checked, nil
}

// CheckModels reads the list of models at a path, which may have a query. It looks up the missing below it: lists contain no aliases.
func (j *Jobs) CheckModels(ctx context.Context, to providers.Target, path string, models []string) (providers.Checked, error) {
	checked := providers.Checked{Subject: askedModels, Listed: true}
	body, err := j.Free(ctx, to, path)
	if err != nil {
		if Forgotten(err) {
			err = notVendor(providers.AsFault(err).Upstream)
		}
		return checked, err
	}
	list := DocOf(body)
	if !list.Has("data") && !list.Has("models") {
		return checked, notVendor(reply(http.StatusOK, nil, body))
	}
	names := list.Texts("data.id", "models.name")
	path, _, _ = strings.Cut(path, "?")
	lookups := 0
	for _, model := range models {
		model = strings.TrimPrefix(model, "models/")
		if slices.Contains(names, model) || slices.Contains(names, "models/"+model) {
			continue
		}
		if lookups == maxLookups {
			checked.Listed = false
			break
		}
		lookups++
		_, err := j.Free(ctx, to, path+"/"+url.PathEscape(model))
		switch fault := providers.AsFault(err); {
		case fault == nil:
		case fault.Upstream != nil && fault.Upstream.Status/100 == 4 && fault.Kind != providers.RateLimited, fault.Malformed:
			checked.Lacks = append(checked.Lacks, model)
		default:
			return checked, err
		}
	}
	return checked, nil
}
