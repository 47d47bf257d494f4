package audit

import (
	"net/netip"
	"time"

	"modelrelay/storage/fair"
)

// entryLimit limits the entries of token holders and of unauthenticated clients in each process: per token or network, and per kind. The
// log has all of them. Without the limit, a client that signs in and out in a loop would displace operators' entries; one day of both
// kinds is at most half of the newest entries. The zero value is ready to use.
type entryLimit struct {
	all fair.Rate[Kind] // per kind, so that unauthenticated clients do not displace token holders
	of  fair.Rate[string]
}

// exceeded reports whether an entry exceeds the limit. Entries of other kinds never do.
func (l *entryLimit) exceeded(e Entry) bool {
	var actor string
	switch e.By {
	case Token:
		actor = "token " + e.Who
	case Unauthenticated:
		actor = "from " + e.From
		if addr, err := netip.ParseAddr(e.From); err == nil {
			actor = "from " + fair.NetworkOf(addr.Unmap()).String()
		}
	default:
		return false
	}
	return l.of.Take(actor, 1, fair.Quota{Units: 20, Per: time.Hour}, e.Time) > 0 ||
		l.all.Take(e.By, 1, fair.Quota{Units: 100, Per: time.Hour}, e.Time) > 0
}
