package openai

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/upstream"
)

// Stored implements providers.StoredReader, of responses.
func (r *Relayer) Stored(ctx context.Context, to providers.Target, request providers.StoredRequest) (*http.Response, error) {
	header := upstream.Header("Authorization", "Bearer "+to.Key.Reveal(), "User-Agent", upstream.Agent(r.client))
	resp, err := upstream.SendStored(ctx, r.client, to.Channel.BaseURL+"/responses", request, header)
	return resp, upstream.Refine(err, providers.OpenAI, classify)
}

// Progress implements providers.Ticketer: https://platform.openai.com/docs/guides/background and the events of streaming responses.
func (r *Relayer) Progress(header http.Header, data []byte) (progress providers.Progress) {
	if wait, err := strconv.ParseInt(header.Get("Openai-Poll-After-Ms"), 10, 32); err == nil && wait > 0 {
		progress.Wait = time.Duration(wait) * time.Millisecond
	}
	response := rawjson.Trim(data)
	if number := response.Get("sequence_number"); number.IsNumber() {
		progress.Event = string(number)
		response = response.Get("response")
	}
	progress.ID = response.Get("id").Text().String()
	status := response.Get("status").Text()
	progress.Shown = !status.Empty()
	progress.Ended = status.Is("completed") || status.Is("failed") || status.Is("incomplete") || status.Is("cancelled")
	return progress
}

// Resume implements providers.Ticketer.
func (r *Relayer) Resume(after string) url.Values {
	query := url.Values{"stream": {"true"}}
	if after != "" {
		query.Set("starting_after", after)
	}
	return query
}
