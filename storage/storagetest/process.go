package storagetest

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage/testport"
	"modelrelay/storage/testwait"
)

// serverVariable names the program of a real Redis, such as valkey-server; default redis-server.
const serverVariable = "MODELRELAY_TEST_REDIS_SERVER"

// fullVariable selects the tests that only .ci/full runs, in this module and in dev/e2e.
const fullVariable = "MODELRELAY_TEST_FULL"

// Full skips the test unless fullVariable is set. Servers elect a primary by real time, so on a busy machine such a test takes long.
func Full(tb testing.TB) {
	tb.Helper()
	if os.Getenv(fullVariable) == "" { //nolint:forbidigo // only tests run this
		tb.Skip("runs with " + fullVariable + "=1")
	}
}

// Process is a real Redis server or sentinel with its own address and folder. A test may kill it and start it again. It ends with the test.
type Process struct {
	Address string // 127.0.0.1:port
	// Dir contains its data and its configuration, which it may write itself.
	Dir string

	args []string
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	out  *Log
}

// StartProcess starts a server with the given lines of configuration, and waits until it accepts connections. Without the program, it skips
// the test.
func StartProcess(tb testing.TB, lines ...string) *Process {
	tb.Helper()
	return startProcess(tb, nil, nil, lines)
}

// SecureFiles are the TLS files of a server. It requires client certificates that CA has signed.
type SecureFiles struct{ Cert, Key, CA string }

// StartSecured is StartProcess of a server with TLS only, also to its primary.
func StartSecured(tb testing.TB, files SecureFiles, lines ...string) *Process {
	tb.Helper()
	return startProcess(tb, &files, nil, lines)
}

func startProcess(tb testing.TB, secure *SecureFiles, args, lines []string) *Process {
	tb.Helper()
	p := &Process{Address: testport.Address(tb), Dir: tb.TempDir(), out: new(Log)}
	host, port, _ := net.SplitHostPort(p.Address)
	file := filepath.Join(p.Dir, "redis.conf")
	first := []string{"bind " + host, "port " + port, "dir " + p.Dir}
	if secure != nil {
		first = []string{
			"bind " + host, "port 0", "tls-port " + port, "dir " + p.Dir, "tls-replication yes", "tls-auth-clients yes",
			"tls-cert-file " + secure.Cert, "tls-key-file " + secure.Key, "tls-ca-cert-file " + secure.CA,
		}
	}
	text := strings.Join(append(first, lines...), "\n") + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	p.args = append([]string{file}, args...)
	tb.Cleanup(p.Kill)
	p.Start(tb)
	return p
}

// Start starts the server, also after a Kill.
func (p *Process) Start(tb testing.TB) {
	tb.Helper()
	program := os.Getenv(serverVariable) //nolint:forbidigo // only tests run this
	if program == "" {
		program = "redis-server"
		if _, err := exec.LookPath(program); err != nil {
			tb.Skip("redis-server is not installed: apt-get install redis-server")
		}
	}
	p.cmd = exec.CommandContext(context.WithoutCancel(tb.Context()), program, p.args...) //nolint:gosec // the tester names it
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	if err := p.cmd.Start(); err != nil {
		tb.Fatalf("%s: %v", serverVariable, err)
	}
	ended := make(chan struct{})
	p.done = ended
	go func() {
		defer close(ended)
		_ = p.cmd.Wait() // it was killed
	}()
	testwait.Eventually(tb, "the server at "+p.Address, Patience, func() bool {
		select {
		case <-ended:
			tb.Fatalf("%s ended:\n%s", program, p.out)
		default:
		}
		conn, err := (&net.Dialer{}).DialContext(tb.Context(), "tcp", p.Address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// Kill ends the server at once, as kill -9 does.
func (p *Process) Kill() {
	if p.cmd == nil || p.cmd.Process == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
}

// Client returns a plain client of the server, closed at the end of the test. change may be nil.
func (p *Process) Client(tb testing.TB, change func(*redis.Options)) *redis.Client {
	tb.Helper()
	opts := &redis.Options{Addr: p.Address}
	if change != nil {
		change(opts)
	}
	client := redis.NewClient(opts)
	tb.Cleanup(func() { _ = client.Close() })
	return client
}
