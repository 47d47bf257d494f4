package e2e_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testcert"
	"modelrelay/storage/testport"
	"modelrelay/storage/testwait"
)

// nodeDir holds the vendors' Node SDKs and their tests, and, after npm ci, a Node that they support.
const nodeDir = repo + "/dev/node"

// TestNodeSDKs runs the tests of dev/node, the vendors' unmodified Node SDKs, against a gateway. The gate's set has those of OpenAI's, and
// the loop of tools of the AI SDK.
func TestNodeSDKs(t *testing.T) {
	t.Parallel()
	node := installedNode(t)
	files := []string{"openai.test.js", "ai_loop.test.js"}
	if stack.IsFull() {
		var err error
		if files, err = filepath.Glob(nodeDir + "/test/*.test.js"); err != nil || len(files) == 0 {
			t.Fatalf("no tests in %s: %v", nodeDir, err)
		}
	}
	const public = "https://gateway.example"
	g := newFormats(t, "public_url: "+public+"\n")
	front, certificate := secured(t, g)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			// One after the other: what upstreams saw last is looked up by operation and model.
			runNode(t, node, g, "test/"+filepath.Base(file), "GATEWAY_TLS_URL=https://"+front, "NODE_EXTRA_CA_CERTS="+certificate,
				"GATEWAY_PUBLIC_URL="+public)
		})
	}
	g.WantNoSecretsLogged(t, promptWord)
}

// runNode runs the tests of a file of dev/node, which must succeed.
func runNode(t *testing.T, node string, g *stack.Gateway, file string, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), node, "--test", "--test-reporter=spec", file)
	cmd.Dir = nodeDir
	cmd.Env = append(append(os.Environ(), "GATEWAY_URL="+g.URL(), "GATEWAY_TOKEN="+stack.Token, "UPSTREAM_CONTROL="+g.Stack.Control.Base),
		env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// installedNode is the Node among the packages, which not every npm links into node_modules/.bin.
func installedNode(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(nodeDir + "/node_modules/node-linux-*/bin/node")
	if err != nil || len(found) == 0 {
		t.Fatalf("no Node in %s: run npm ci there (%v)", nodeDir, err)
	}
	path, err := filepath.Abs(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// secured starts a gateway like the given one that speaks TLS. It returns its address, and the file of its certificate.
func secured(t *testing.T, g *stack.Gateway) (addr, certificate string) {
	t.Helper()
	dir := t.TempDir()
	pair, at := testcert.New(t, dir), testport.Address(t)
	text, err := os.ReadFile(g.ConfigFile)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "gateway.yaml")
	plain := "listen: " + g.Address + "\n"
	if !strings.Contains(string(text), plain) {
		t.Fatalf("no %q in %s", plain, text)
	}
	listen := "listen: " + at + "\ntls: {cert: tls.crt, key: tls.key}\n"
	if err := os.WriteFile(config, []byte(strings.Replace(string(text), plain, listen, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	running := g.Stack.Launch("gateway with TLS", g.Binary, "serve", "--worker=false", "--config", config)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: testcert.Trusted(pair)}}
	t.Cleanup(client.CloseIdleConnections)
	testwait.Eventually(t, "the gateway with TLS answers", stack.ReadyTimeout, func() bool {
		select {
		case <-running.Done:
			t.Fatalf("gateway ended:\n%s", running.Out.Tail(stack.ShownLines))
		default:
		}
		resp, err := client.Get("https://" + at + "/healthz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return at, pair.Cert
}
