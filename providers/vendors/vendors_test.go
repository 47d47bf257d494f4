package vendors_test

import (
	"net/http"
	"testing"

	"modelrelay/providers/vendors"
)

func TestNew(t *testing.T) {
	t.Parallel()
	for name, vendor := range vendors.New(http.DefaultClient) {
		if vendor.Name != name {
			t.Errorf("vendor %q has the key %q", vendor.Name, name)
		}
		if vendor.Relay == nil && vendor.Video == nil {
			t.Errorf("vendor %q serves nothing", name)
		}
		if (vendor.Relay == nil) != (len(vendor.Endpoints) == 0) {
			t.Errorf("vendor %q: got relayer %v and endpoints %v", name, vendor.Relay, vendor.Endpoints)
		}
		for endpoint := range vendor.Usage {
			if !vendor.Serves(endpoint) {
				t.Errorf("vendor %q counts what it does not serve: %s", name, endpoint)
			}
		}
	}
}
