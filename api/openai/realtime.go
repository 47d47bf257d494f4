package openai

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/calls"
	"modelrelay/api/edge"
	"modelrelay/providers"
)

const realtimePath = "/v1/realtime"

// The subprotocols that a browser offers, because it cannot set headers.
const (
	// realtimeProtocol is the only subprotocol that the gateway selects.
	realtimeProtocol = "realtime"
	// keyProtocol is the prefix of the client's key.
	keyProtocol = "openai-insecure-api-key."
	// betaProtocol replaces the header OpenAI-Beta: realtime=v1.
	betaProtocol = "openai-beta.realtime-v1"
)

func (a adder) addRealtime(standard string) {
	a.group.With(edge.Access{Permission: edge.RealtimePermission, Meter: edge.MeterCalls}).Handle(huma.Operation{
		OperationID: "createRealtimeConversation", Method: http.MethodGet, Path: realtimePath,
		Tags: []string{edge.RealtimeTag}, Summary: "Realtime conversation",
		Description: "A WebSocket. The gateway copies messages, close codes and reasons in both directions. " +
			"A message has at most 32 MiB, or 1 MiB if the group of the token forbids fields of calls. " +
			"A client that cannot set a header may send the API token in the query parameter `key` or in the subprotocol " +
			"`openai-insecure-api-key.<API_TOKEN>` together with `realtime`.",
		Parameters: []*huma.Param{edge.Parameter("query", "model", "Model id; the deployment may have a default")},
		Responses: map[string]*huma.Response{
			"101": {Description: "The protocol is switched"},
			"400": {
				Description: "Bad request, or not a WebSocket request",
				Content:     map[string]*huma.MediaType{"application/json": {Schema: a.group.FaultSchema()}},
			},
		},
	}, a.calls.Charged(func(x *edge.Request, r *http.Request, ch *calls.Charge) error {
		if err := checkUpgrade(x.Header(), r); err != nil {
			return err
		}
		call, err := realtimeCall(r, standard)
		if err != nil {
			return err
		}
		return a.calls.Converse(x, r, ch, call, calls.Dialogue{Protocol: realtimeProtocol, Refusal: refuseEvent})
	}))
}

// refusedEvent is the event about a client's message that the gateway did not relay.
type refusedEvent struct {
	Type    string `json:"type"`
	EventID string `json:"event_id"`
	Error   struct {
		openAIErrorBody

		EventID *string `json:"event_id"`
	} `json:"error"`
}

// refuseEvent returns the refusal of an event, with the event's id if it has one.
func refuseEvent(event []byte, fault *providers.Fault) []byte {
	refused := refusedEvent{Type: "error", EventID: "event_" + rand.Text()}
	refused.Error.openAIErrorBody = newErrorBody(fault)
	var named struct {
		EventID string `json:"event_id"`
	}
	if json.Unmarshal(event, &named) == nil && named.EventID != "" {
		refused.Error.EventID = &named.EventID
	}
	text, _ := json.Marshal(refused) // a struct of strings
	return text
}

// realtimeCall returns the call of a request; standard is the default model, "" for none.
func realtimeCall(r *http.Request, standard string) (providers.RealtimeCall, error) {
	query := r.URL.Query()
	call := providers.RealtimeCall{Model: query.Get("model"), Header: make(http.Header), Query: make(url.Values)}
	if call.Model == "" {
		call.Model, call.Unnamed = standard, query.Get("intent") == "transcription"
	}
	if call.Model == "" {
		return call, providers.InvalidField("model", "Invalid request: 'model' is required.")
	}
	for name, values := range query {
		if name != "model" && !mayBeCredential(name) {
			call.Query[name] = values
		}
	}
	if beta := r.Header.Values("OpenAI-Beta"); len(beta) > 0 {
		call.Header["Openai-Beta"] = beta
	} else if edge.HeaderLists(r.Header, "Sec-Websocket-Protocol", betaProtocol) {
		call.Header.Set("OpenAI-Beta", "realtime=v1")
	}
	return call, calls.CheckModel(call.Model)
}

// mayBeCredential reports whether a query parameter may contain the client's key, which no upstream may receive.
func mayBeCredential(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "key") || strings.Contains(name, "token") || strings.Contains(name, "auth") ||
		strings.Contains(name, "secret")
}

// checkUpgrade checks whether the request is a WebSocket handshake (RFC 6455, section 4.2.1). For any other request it returns a fault with
// the contract's status.
func checkUpgrade(answer http.Header, r *http.Request) error {
	keys := r.Header.Values("Sec-Websocket-Key")
	switch {
	case !r.ProtoAtLeast(1, 1) || !edge.HeaderLists(r.Header, "Connection", "upgrade") || !edge.HeaderLists(r.Header, "Upgrade", "websocket"):
		return providers.InvalidField("", "This path accepts only WebSocket connections.")
	case r.Header.Get("Sec-Websocket-Version") != "13":
		answer.Set("Sec-Websocket-Version", "13")
		return providers.InvalidField("", "The WebSocket version is not supported: version 13 is required.")
	case len(keys) != 1:
		return providers.InvalidField("", "The Sec-WebSocket-Key is missing or given twice.")
	}
	if nonce, err := base64.StdEncoding.DecodeString(strings.TrimSpace(keys[0])); err != nil || len(nonce) != 16 {
		return providers.InvalidField("", "The Sec-WebSocket-Key is not 16 bytes in base64.")
	}
	return nil
}

// socketCredential returns the key in the subprotocols of a conversation, "" for none.
func socketCredential(r *http.Request) string {
	if r.URL.Path != realtimePath {
		return ""
	}
	for _, value := range r.Header.Values("Sec-Websocket-Protocol") {
		for item := range strings.SplitSeq(value, ",") {
			if key, ok := strings.CutPrefix(strings.TrimSpace(item), keyProtocol); ok {
				return key
			}
		}
	}
	return ""
}
