package providertest

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// RelayRefusal is a vendor's refusal of a call and its expected fault.
type RelayRefusal struct {
	Name   string
	Status int
	Body   string

	Kind  providers.Kind
	Blame providers.Blame
	Key   providers.KeyFault
	Code  string
	Param string
	Wait  time.Duration
}

// RefusingVendor is a Relayer whose vendor refuses every call.
type RefusingVendor struct {
	New func(*http.Client) providers.Relayer
	// Endpoint is one that the vendor serves, Unserved are others.
	Endpoint providers.Endpoint
	Unserved []providers.Endpoint
	// Header are headers of every refusal.
	Header   http.Header
	Refusals []RelayRefusal
}

// TestRefusals checks each refusal: the fault has the vendor's meaning and its answer for the client. Then it checks the refusals before
// anything is sent: of endpoints that the vendor does not serve, and of an invalid address.
func TestRefusals(t *testing.T, v RefusingVendor) {
	t.Helper()
	for _, want := range v.Refusals {
		t.Run(want.Name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				maps.Copy(w.Header(), v.Header)
				w.WriteHeader(want.Status)
				_, _ = io.WriteString(w, want.Body)
			}))
			t.Cleanup(server.Close)
			fault := v.fault(t, server.URL, v.Endpoint)
			got := RelayRefusal{
				Name: want.Name, Status: want.Status, Body: string(fault.Upstream.Body),
				Kind: fault.Kind, Blame: fault.Blame, Key: fault.Key, Code: fault.Code, Param: fault.Param, Wait: fault.RetryAfter,
			}
			want.Body = elementOf(want.Body)
			if got != want || fault.Upstream.Format != v.Endpoint.Format {
				t.Errorf("got %+v in the format %q, want %+v", got, fault.Upstream.Format, want)
			}
		})
	}
	t.Run("unserved", func(t *testing.T) {
		t.Parallel()
		for _, endpoint := range v.Unserved {
			if fault := v.fault(t, "http://upstream.invalid", endpoint); fault.Kind != providers.Internal {
				t.Errorf("%s: got %v, want an internal fault", endpoint, fault)
			}
		}
	})
	t.Run("bad address", func(t *testing.T) {
		t.Parallel()
		fault := v.fault(t, "http://bad address\x7f", v.Endpoint)
		if fault.Blame != providers.BlameChannel || fault.Accepted != providers.NotAccepted {
			t.Errorf("got %v, want a fault of the channel", fault)
		}
	})
}

// fault returns the fault of a call at an address, which must fail.
func (v RefusingVendor) fault(t *testing.T, base string, endpoint providers.Endpoint) *providers.Fault {
	t.Helper()
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	to := providers.Target{Channel: providers.Channel{Name: "a", BaseURL: base}, Key: "k", Model: "m"}
	resp, err := v.New(client).Relay(t.Context(), to,
		&providers.Call{Endpoint: endpoint, Model: "m", Content: providers.Content{Body: []byte(`{}`)}})
	if err == nil {
		resp.Body.Close()
	}
	fault := providers.AsFault(err)
	if fault == nil {
		t.Fatalf("got %v, want a fault", err)
	}
	return fault
}

// elementOf returns the only element of an array, or the body itself.
func elementOf(body string) string {
	if element := strings.TrimSuffix(strings.TrimPrefix(body, "["), "]"); element != "" {
		return element
	}
	return body
}
