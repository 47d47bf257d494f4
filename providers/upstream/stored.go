package upstream

import (
	"bytes"
	"context"
	"net/http"
	"net/url"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// SendStored requests a stored answer below the address of all of them. The header is that of the vendor's requests, without Accept.
func SendStored(
	ctx context.Context, client *http.Client, address string, request providers.StoredRequest, header http.Header,
) (*http.Response, error) {
	method, address := http.MethodGet, address+"/"+url.PathEscape(request.ID)
	switch request.Do {
	case providers.StoredGet:
	case providers.StoredCancel:
		method, address = http.MethodPost, address+"/cancel"
	case providers.StoredDelete:
		method = http.MethodDelete
	case providers.StoredInput:
		address += "/input_items"
	}
	if method == http.MethodGet && len(request.Query) > 0 {
		address += "?" + request.Query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, unusable(err)
	}
	req.Header = header
	req.Header.Set("Accept", "application/json")
	if request.Stream {
		req.Header.Set("Accept", "text/event-stream")
	}
	return Send(client, req)
}

// InBackground returns the edit that makes the vendor of a Ticketer run a call with a JSON body in the background.
func InBackground(call *providers.Call) []providers.Edit {
	object := rawjson.Trim(call.Body)
	at := bytes.IndexByte(call.Body, '{') + 1
	text := `"background":true`
	if next := rawjson.Space(object, 1); next < len(object) && object[next] == '"' {
		text += ","
	}
	return []providers.Edit{{At: providers.Span{From: at, To: at}, Text: []byte(text)}}
}
