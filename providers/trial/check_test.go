package trial_test

import (
	"net/http"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/catalog"
	"modelrelay/providers/trial"
)

// TestTypedKeyIsApart: an adapter that keeps something of its keys is another one for the trial of a typed key.
func TestTypedKeyIsApart(t *testing.T) {
	t.Parallel()
	vendor := catalog.New(http.DefaultClient)["veo"]
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
