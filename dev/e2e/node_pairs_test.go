package e2e_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"modelrelay/dev/e2e/stack"
)

// unpaced lets the fake upstreams stream as fast as they can.
const unpaced = "--chunk-interval=-1ms"

// TestNodePairs runs the tests of dev/node/pairs: clients that talk in every chat dialect, on models of every vendor.
func TestNodePairs(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	node := installedNode(t)
	files, err := filepath.Glob(nodeDir + "/pairs/*.test.js")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", nodeDir, err)
	}
	s := stack.SharedRelay(t, unpaced)
	searching := fmt.Sprintf(`  - {name: searching, vendor: openai, base_url: "http://%s/openai/v1", keys: [sk-upstream-searching], groups: [default],
     models: {gpt-4o-search-preview: }, dialect: chat}
`, s.UpstreamAt)
	// Upstreams fail in these tests, again and again.
	g := s.StartGateway(stack.GatewayOptions{Channels: s.Pairs("gpt-5.5: ", "") + searching, Relay: "cooldown: 1ms, cooldown_failures: 32"})
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			runNode(t, node, g, "pairs/"+filepath.Base(file), "AI_SDK_LOG_WARNINGS=false")
		})
	}
	g.WantNoSecretsLogged(t, "harbour")
}
