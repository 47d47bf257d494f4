package trial_test

import (
	"net/http"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/trial"
	"modelrelay/providers/vendors"
)

// TestRefusedFillsItsSentence: every value that a sentence has a place for is there, also where the upstream said nothing.
func TestRefusedFillsItsSentence(t *testing.T) {
	t.Parallel()
	for code, fault := range map[string]*providers.Fault{
		"trial.key_refused": {Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyRefused},
		"trial.not_found":   {Kind: providers.NotFound},
	} {
		said := trial.Refused(fault, "")
		if detail, there := said.Values["detail"]; said.Code != code || !there || detail != "" || strings.Contains(said.Words, "{") {
			t.Errorf("%s: %+v", code, said)
		}
	}
}

// TestTypedKeyIsApart: an adapter that keeps something of its keys is another one for the trial of a typed key.
func TestTypedKeyIsApart(t *testing.T) {
	t.Parallel()
	vendor := vendors.New(http.DefaultClient)["veo"]
	channel := providers.Channel{Name: "main", Vendor: "veo", Keys: []providers.Secret{"own"}}
	for key, apart := range map[providers.Secret]bool{"": false, "typed": true} {
		ask, err := trial.New(vendor, channel, key)
		if err != nil {
			t.Fatal(err)
		}
		if got := ask.Vendor.Video != vendor.Video; got != apart {
			t.Errorf("key %q: apart is %t, want %t", key.Reveal(), got, apart)
		}
	}
}
