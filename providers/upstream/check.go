package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"modelrelay/providers"
)

const (
	// NobodysJob is an id in the form of many vendors', of a job that nobody has made.
	NobodysJob = "00000000-0000-4000-8000-000000000000"
	// mostLooked bounds how many models a check looks up one by one, which the list does not have: aliases are in no list.
	mostLooked = 10
	// What a vendor was asked, in words.
	askedJob, askedModels = "a job that nobody has made", "the list of models"
)

// Free reads what a vendor answers to a GET that costs nothing. What is no JSON object says that the address is another's.
func (j *Jobs) Free(ctx context.Context, to providers.Target, path string) ([]byte, error) {
	answer, err := j.Do(ctx, to, JobRequest{Path: path})
	if err != nil {
		return nil, err
	}
	if !object(answer.Body) {
		return nil, strange(&providers.Reply{Status: answer.Status, ContentType: answer.Header.Get("Content-Type")})
	}
	return answer.Body, nil
}

// object tells a JSON object.
func object(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) && json.Valid(body)
}

// strange is the fault of an answer that is not as the vendor's are.
func strange(reply *providers.Reply) *providers.Fault {
	return &providers.Fault{
		Kind: providers.Upstream, Message: "What answers at the address is not this vendor's API.", Blame: providers.BlameChannel, Malformed: true, Upstream: reply,
	}
}

// LookedUp says what the look-up of a job that nobody has made tells of address and key, from its error. forgotten tells the
// vendor's own word that it does not know the job, nil where the status does. It must be JSON: any web server has a 404.
func LookedUp(err error, forgotten func(error) bool) (providers.Checked, error) {
	checked := providers.Checked{Asked: askedJob}
	var fault *providers.Fault
	answered := errors.As(err, &fault) && fault.Upstream != nil
	unknown := Forgotten(err) || forgotten != nil && forgotten(err) || answered && (fault.Kind == providers.NotFound || fault.Kind == providers.Invalid)
	switch {
	case err != nil && !unknown:
		return checked, err
	case answered && !object(fault.Upstream.Body):
		return checked, strange(fault.Upstream)
	}
	return checked, nil
}

// CheckModels asks for the list of models at a path, its query and all, and for those that the list does not have one by one below
// the path: names that stand for others are in no list.
func (j *Jobs) CheckModels(ctx context.Context, to providers.Target, path string, models []string) (providers.Checked, error) {
	checked := providers.Checked{Asked: askedModels, Told: true}
	body, err := j.Free(ctx, to, path)
	if err != nil {
		if Forgotten(err) {
			err = strange(providers.AsFault(err).Upstream)
		}
		return checked, err
	}
	var list struct {
		Data []struct {
			ID Loose `json:"id"`
		} `json:"data"`
		Models []struct {
			Name Loose `json:"name"`
		} `json:"models"`
	}
	if err := json.Unmarshal(body, &list); err != nil || list.Data == nil && list.Models == nil {
		return checked, strange(&providers.Reply{Status: http.StatusOK, Body: body[:min(len(body), MaxErrorBody)]})
	}
	var names []string
	for _, one := range list.Data {
		names = append(names, string(one.ID))
	}
	for _, one := range list.Models {
		names = append(names, strings.TrimPrefix(string(one.Name), "models/"))
	}
	path, _, _ = strings.Cut(path, "?")
	looked := 0
	for _, model := range models {
		model = strings.TrimPrefix(model, "models/")
		if slices.Contains(names, model) {
			continue
		}
		if looked == mostLooked {
			checked.Told = false
			break
		}
		looked++
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
