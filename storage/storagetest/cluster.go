package storagetest

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage/testport"
	"modelrelay/storage/testwait"
)

// slotsOfCluster is the number of slots of a Redis Cluster.
const slotsOfCluster = 16384

// StartCluster starts a Redis Cluster of three primaries, with replicas one of each, and waits until it serves. The primaries come first.
// See Full.
func StartCluster(tb testing.TB, replicas bool, lines ...string) []*Process {
	tb.Helper()
	Full(tb)
	const primaries = 3
	count := primaries
	if replicas {
		count *= 2
	}
	lines = append(lines, "cluster-enabled yes", "cluster-node-timeout 1000", "cluster-replica-validity-factor 0", `save ""`,
		"repl-diskless-sync-delay 0")
	nodes, clients := make([]*Process, count), make([]*redis.Client, count)
	ids := make([]string, count)
	ctx := tb.Context()
	for i := range nodes {
		_, bus, _ := net.SplitHostPort(testport.Address(tb))
		nodes[i] = StartProcess(tb, append(lines, "cluster-port "+bus)...)
		clients[i] = nodes[i].Client(tb, nil)
		ids[i] = clients[i].Do(ctx, "CLUSTER", "MYID").Val().(string)
		if i < primaries {
			from, to := i*slotsOfCluster/primaries, (i+1)*slotsOfCluster/primaries-1
			if err := clients[i].Do(ctx, "CLUSTER", "ADDSLOTSRANGE", from, to).Err(); err != nil {
				tb.Fatal(err)
			}
		}
		host, port, _ := net.SplitHostPort(nodes[i].Address)
		if err := clients[0].Do(ctx, "CLUSTER", "MEET", host, port, bus).Err(); err != nil {
			tb.Fatal(err)
		}
	}
	for i := range nodes {
		testwait.Eventually(tb, "the cluster", Patience, func() bool {
			known, _ := clients[i].ClusterNodes(ctx).Result()
			return strings.Count(known, "connected") == count && strings.Count(known, "handshake") == 0
		})
		if i >= primaries {
			testwait.Eventually(tb, "the replica", Patience, func() bool {
				return clients[i].Do(ctx, "CLUSTER", "REPLICATE", ids[i-primaries]).Err() == nil
			})
		}
	}
	for i := range nodes {
		testwait.Eventually(tb, "the cluster serves", Patience, func() bool {
			info, _ := clients[i].ClusterInfo(ctx).Result()
			role, _ := clients[i].Do(ctx, "ROLE").Slice()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", count)) &&
				(i < primaries || len(role) > 3 && role[3] == "connected")
		})
	}
	return nodes
}
