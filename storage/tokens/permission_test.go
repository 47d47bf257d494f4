package tokens_test

import (
	"net/netip"
	"testing"

	"modelrelay/storage/tokens"
)

func TestTokenPermits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		operations []string
		permits    map[string]bool
	}{
		{nil, map[string]bool{"relay": true, "video": true, "realtime": true}},
		{[]string{"video"}, map[string]bool{"relay": false, "video": true, "realtime": false}},
		{[]string{"realtime", "relay"}, map[string]bool{"relay": true, "video": false, "realtime": true}},
	} {
		token := tokens.Token{Operations: test.operations}
		for _, operation := range tokens.Operations() {
			if got := token.Permits(operation); got != test.permits[operation] {
				t.Errorf("%v permits %s: got %v", test.operations, operation, got)
			}
		}
	}
}

func TestTokenAdmits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		networks []string
		source   string
		want     bool
	}{
		{nil, "203.0.113.9", true},
		{nil, "", true},
		{[]string{"10.0.0.0/8"}, "10.200.3.4", true},
		{[]string{"10.0.0.0/8"}, "11.0.0.1", false},
		{[]string{"10.0.0.0/8"}, "::ffff:10.1.1.1", true}, // as a listener on both families reports it
		{[]string{"10.0.0.0/8"}, "", false},
		{[]string{"10.1.2.3/32", "2001:db8::/32"}, "2001:db8:5::1", true},
		{[]string{"10.1.2.3/32", "2001:db8::/32"}, "10.1.2.4", false},
		{[]string{"fe80::/10"}, "fe80::1%eth0", true},
		{[]string{"nonsense"}, "10.1.2.3", false},
		{[]string{"0.0.0.0/0"}, "2001:db8::1", false},
	} {
		var source netip.Addr
		if test.source != "" {
			source = netip.MustParseAddr(test.source)
		}
		token := tokens.Token{Networks: test.networks}
		if got := token.Admits(source); got != test.want {
			t.Errorf("%v admits %q: got %v, want %v", test.networks, test.source, got, test.want)
		}
	}
}
