package storagetest

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage/testwait"
)

// Failover is a primary, its replica, and three sentinels that promote the replica when the primary is gone.
type Failover struct {
	Servers   []*Process // the primary comes first
	Sentinels []*Process

	tls *tls.Config // of clients; nil: no TLS
}

// The primary's name and the credentials of a Failover.
const (
	FailoverMaster           = "gateway"
	FailoverUser             = "relay"
	FailoverPassword         = "server-secret"
	FailoverSentinelPassword = "sentinel-secret"
)

// StartFailover starts a Failover and waits until the sentinels know each other and the replica follows. See Full.
func StartFailover(tb testing.TB) *Failover {
	tb.Helper()
	return startFailover(tb, nil, nil)
}

// StartSecuredFailover is StartFailover with TLS only, and one certificate for all servers and sentinels; config is of their clients.
func StartSecuredFailover(tb testing.TB, files SecureFiles, config *tls.Config) *Failover {
	tb.Helper()
	return startFailover(tb, &files, config)
}

func startFailover(tb testing.TB, files *SecureFiles, config *tls.Config) *Failover {
	tb.Helper()
	Full(tb)
	user := "user " + FailoverUser + " on >" + FailoverPassword + " ~* &* +@all"
	lines := []string{
		user, "user default off", "masteruser " + FailoverUser, "masterauth " + FailoverPassword, `save ""`,
		"repl-diskless-sync-delay 0",
	}
	f := &Failover{tls: config, Servers: []*Process{startProcess(tb, files, nil, lines)}}
	primary := strings.ReplaceAll(f.Servers[0].Address, ":", " ")
	f.Servers = append(f.Servers, startProcess(tb, files, nil, append(lines, "replicaof "+primary)))
	for range 3 {
		f.Sentinels = append(f.Sentinels, startProcess(tb, files, []string{"--sentinel"}, []string{
			"requirepass " + FailoverSentinelPassword,
			"sentinel monitor " + FailoverMaster + " " + primary + " 2",
			"sentinel auth-user " + FailoverMaster + " " + FailoverUser, "sentinel auth-pass " + FailoverMaster + " " + FailoverPassword,
			"sentinel sentinel-pass " + FailoverSentinelPassword,
			"sentinel down-after-milliseconds " + FailoverMaster + " 2000", "sentinel failover-timeout " + FailoverMaster + " 3000",
		}))
	}
	for _, sentinel := range f.Sentinels {
		client := sentinel.Client(tb, func(o *redis.Options) { o.Password, o.TLSConfig = FailoverSentinelPassword, config })
		// After two seconds without CPU, as on a busy machine, a sentinel would otherwise do nothing for half a minute.
		if err := client.Do(tb.Context(), "SENTINEL", "DEBUG", "tilt-trigger", Patience.Milliseconds()).Err(); err != nil {
			tb.Fatal(err)
		}
		testwait.Eventually(tb, "the sentinels", Patience, func() bool {
			known, _ := client.Do(tb.Context(), "SENTINEL", "CKQUORUM", FailoverMaster).Text()
			seen, _ := client.Do(tb.Context(), "SENTINEL", "REPLICAS", FailoverMaster).Slice()
			return strings.HasPrefix(known, "OK 3") && len(seen) == 1
		})
	}
	replica := f.Client(tb, 1)
	testwait.Eventually(tb, "the replica", Patience, func() bool {
		role, _ := replica.Do(tb.Context(), "ROLE").Slice()
		return len(role) > 3 && role[3] == "connected"
	})
	return f
}

// KillPrimary waits until the replica has all writes, kills the present primary and returns its index, 0 or 1: on a busy machine, the
// sentinels may have promoted the second server.
func (f *Failover) KillPrimary(tb testing.TB) (killed int) {
	tb.Helper()
	clients := []*redis.Client{f.Client(tb, 0), f.Client(tb, 1)}
	testwait.Eventually(tb, "a primary and its replica", Patience, func() bool {
		killed = slices.IndexFunc(clients, func(c *redis.Client) bool {
			followed, err := c.Wait(tb.Context(), 1, time.Second).Result() // a replica refuses to wait
			return err == nil && followed == 1
		})
		return killed >= 0
	})
	f.Servers[killed].Kill()
	return killed
}

// Client returns a client of one of the servers.
func (f *Failover) Client(tb testing.TB, server int) *redis.Client {
	tb.Helper()
	return f.Servers[server].Client(tb, func(o *redis.Options) { o.Username, o.Password, o.TLSConfig = FailoverUser, FailoverPassword, f.tls })
}

// Addresses returns the addresses of the sentinels.
func (f *Failover) Addresses() []string {
	var addresses []string
	for _, sentinel := range f.Sentinels {
		addresses = append(addresses, sentinel.Address)
	}
	return addresses
}
