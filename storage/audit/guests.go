package audit

import (
	"net/netip"
	"time"

	"modelrelay/storage/fair"
)

// guests bounds the entries of holders of tokens and of strangers: of each token or network, and of a kind together, in each process.
// Beyond that they are in the log alone: a client that signs in and out in a loop must not push what operators did out of the newest
// entries, of which a day of both kinds is a half. The zero value has counted none.
type guests struct {
	all fair.Rate[Kind] // holders do not lose their entries to strangers
	of  fair.Rate[string]
}

// turnAway reports whether an entry is one too many. Those of others never are.
func (g *guests) turnAway(e Entry) bool {
	var who string
	switch e.By {
	case Token:
		who = "token " + e.Who
	case Nobody:
		who = "from " + network(e.From)
	default:
		return false
	}
	return g.of.Take(who, 1, fair.Quota{Units: 20, Per: time.Hour}, e.Time) > 0 ||
		g.all.Take(e.By, 1, fair.Quota{Units: 100, Per: time.Hour}, e.Time) > 0
}

// network is what an address counts as: one of IPv6 belongs to a subscriber that has all of its /64.
func network(address string) string {
	addr, err := netip.ParseAddr(address)
	if err != nil || addr.Unmap().Is4() {
		return address
	}
	prefix, err := addr.Prefix(64)
	if err != nil {
		return address
	}
	return prefix.String()
}
