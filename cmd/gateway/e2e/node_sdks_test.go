package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"modelrelay/cmd/gateway/e2e/stack"
)

const (
	// nodeDir holds the vendors' Node SDKs and their tests, and, once "npm ci" ran there, a Node that they take.
	nodeDir = repo + "/dev/node"
	// needNode is set where these tests must not be left out.
	needNode = "MODELRELAY_TEST_NODE"
)

// TestNodeSDKs runs the tests of dev/node, the vendors' unmodified Node SDKs, against a gateway.
func TestNodeSDKs(t *testing.T) {
	t.Parallel()
	node := installedNode(t, needNode)
	files, err := filepath.Glob(nodeDir + "/test/*.test.js")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", nodeDir, err)
	}
	const public = "https://gateway.example"
	g := newFormats(t, "public_url: "+public+"\n")
	front, certificate := secured(t, g.Address)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			// One after the other: what upstreams saw last is looked up by operation and model.
			runNode(t, node, g, "test/"+filepath.Base(file), "GATEWAY_TLS_URL=https://"+front, "NODE_EXTRA_CA_CERTS="+certificate, "GATEWAY_PUBLIC_URL="+public)
		})
	}
	g.WantNoSecretsLogged(t, promptWord)
}

// runNode runs the tests of a file of dev/node, which must succeed.
func runNode(t *testing.T, node string, g *stack.Gateway, file string, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), node, "--test", "--test-reporter=spec", file)
	cmd.Dir = nodeDir
	cmd.Env = append(append(os.Environ(), "GATEWAY_URL="+g.URL(), "GATEWAY_TOKEN="+stack.Token, "UPSTREAM_CONTROL="+g.Stack.Control.Base), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// installedNode is the Node among the packages, which not every npm links into node_modules/.bin. Without one the test is left out,
// or fails where the variable need is set.
func installedNode(t *testing.T, need string) string {
	t.Helper()
	found, err := filepath.Glob(nodeDir + "/node_modules/node-linux-*/bin/node")
	switch {
	case err != nil || len(found) == 0 && os.Getenv(need) != "":
		t.Fatalf("no Node in %s: run npm ci there (%v)", nodeDir, err)
	case len(found) == 0:
		t.Skip("run npm ci in dev/node first")
	}
	path, err := filepath.Abs(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// secured listens with TLS and passes what comes to the address. It returns its own, and the file of its certificate.
func secured(t *testing.T, target string) (addr, certificate string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gateway"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate = filepath.Join(t.TempDir(), "certificate.pem")
	if err := os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := new(net.Dialer).DialContext(t.Context(), "tcp", target)
				if err != nil {
					return
				}
				defer out.Close()
				go func() {
					_, _ = io.Copy(out, in)
					_ = out.Close()
				}()
				_, _ = io.Copy(in, out)
			}()
		}
	}()
	return listener.Addr().String(), certificate
}
