package audit

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// guestHour is how long entries of those who operate nothing are counted together.
	guestHour = time.Hour
	// guestShare is how many of them one token, or one address of nobody's, has in it, and guestsMost all of a kind together, in each
	// process. Beyond that they stand in the log alone: who signs in and out in a loop must not push what operators did out of
	// the newest entries, of which a day of both kinds is a half.
	guestShare = 20
	guestsMost = 100
)

// guests counts the entries of holders of tokens and of strangers. The zero value has counted none.
type guests struct {
	mu    sync.Mutex
	since time.Time
	all   map[Kind]int // holders do not lose their entries to strangers
	of    map[string]int
}

// turnAway tells whether an entry is one too many. Those of others never are.
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
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.Time.Sub(g.since) >= guestHour {
		g.since, g.all, g.of = e.Time, make(map[Kind]int), make(map[string]int)
	}
	if g.all[e.By] >= guestsMost || g.of[who] >= guestShare {
		return true
	}
	g.all[e.By]++
	g.of[who]++
	return false
}

// network is whom an address speaks for: one of IPv6 belongs to somebody who has all of its /64.
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
