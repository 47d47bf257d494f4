package audit

import (
	"net/netip"
	"time"

	"modelrelay/storage/fair"
)

// guests limits the entries of token holders and of unauthenticated clients in each process: per token or network, and per kind. The
// log has all of them. Without the limit, a client that signs in and out in a loop would displace operators' entries; one day of both
// kinds is at most half of the newest entries. The zero value is ready to use.
type guests struct {
	all fair.Rate[Kind] // per kind, so that unauthenticated clients do not displace token holders
	of  fair.Rate[string]
}

// turnAway reports whether an entry exceeds the limit. Entries of other kinds never do.
func (g *guests) turnAway(e Entry) bool {
	var who string
	switch e.By {
	case Token:
		who = "token " + e.Who
	case Nobody:
		who = "from " + e.From
		if addr, err := netip.ParseAddr(e.From); err == nil {
			who = "from " + fair.NetworkOf(addr.Unmap()).String()
		}
	default:
		return false
	}
	return g.of.Take(who, 1, fair.Quota{Units: 20, Per: time.Hour}, e.Time) > 0 ||
		g.all.Take(e.By, 1, fair.Quota{Units: 100, Per: time.Hour}, e.Time) > 0
}
