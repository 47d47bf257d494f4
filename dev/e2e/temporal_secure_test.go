package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testcert"
	"modelrelay/storage/testwait"
)

// Methods of Temporal that fronts refuse and count.
const (
	workflowService = "/temporal.api.workflowservice.v1.WorkflowService/"
	operatorService = "/temporal.api.operatorservice.v1.OperatorService/"
)

// gRPC's codes as fronts answer them.
const (
	grpcInvalid   = 3
	grpcDenied    = 7
	grpcExhausted = 8
)

// exitCode is what a command ended with.
func exitCode(err error) int {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// pki is what a secured cluster and its clients have.
type pki struct {
	folder                string
	servers, clients      *testcert.Authority
	soon, past            time.Time
	serverCert, serverKey string
}

func newPKI(t *testing.T) *pki {
	t.Helper()
	p := &pki{
		folder: t.TempDir(), servers: testcert.NewAuthority(t), clients: testcert.NewAuthority(t), soon: time.Now().Add(time.Hour),
		past: time.Now().Add(-time.Hour),
	}
	p.serverCert, p.serverKey = p.files("server")
	p.servers.Sign(t, "localhost", p.soon, p.serverCert, p.serverKey)
	return p
}

// files are those of a certificate and its key.
func (p *pki) files(name string) (cert, key string) {
	return filepath.Join(p.folder, name+".pem"), filepath.Join(p.folder, name+".key")
}

// client makes the certificate of a client, signed by that authority, and is the members of the section that name it.
func (p *pki) client(t *testing.T, name string, by *testcert.Authority, until time.Time) string {
	t.Helper()
	cert, key := p.files(name)
	by.Sign(t, name, until, cert, key)
	return fmt.Sprintf("cert: %s, key: %s", cert, key)
}

// TestTemporalBadInput: whatever is wrong with the way to a secured cluster, the command that checks it ends with an error that
// names the key or the file.
func TestTemporalBadInput(t *testing.T) {
	t.Parallel()
	s, p := stack.SharedTemporal(t), newPKI(t)
	secured := stack.FrontOptions{CertFile: p.serverCert, KeyFile: p.serverKey, Clients: p.clients, APIKey: "right-key"}
	front := stack.NewTemporalFront(t, s.TemporalAt, secured)
	expired, other, keyless := secured, secured, secured
	expired.CertFile, expired.KeyFile = p.files("expired-server")
	p.servers.Sign(t, "localhost", p.past, expired.CertFile, expired.KeyFile)
	other.CertFile, other.KeyFile = p.files("other-server")
	p.servers.Sign(t, "temporal.example.com", p.soon, other.CertFile, other.KeyFile)
	keyless.Clients = nil
	expiredFront, otherFront, keylessFront := stack.NewTemporalFront(t, s.TemporalAt, expired), stack.NewTemporalFront(t, s.TemporalAt, other),
		stack.NewTemporalFront(t, s.TemporalAt, keyless)

	ca := "ca: " + p.servers.File
	good := p.client(t, "client", p.clients, p.soon)
	cert, _ := p.files("client")
	old := p.client(t, "expired", p.clients, p.past)
	oldCert, _ := p.files("expired")
	unreadable := filepath.Join(p.folder, "unreadable.key")
	if err := os.Mkdir(unreadable, 0o700); err != nil { // of a file's rights the superuser takes no notice
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		at, section string
		code        int // the command's
		want        string
	}{
		"right": {front.Address, fmt.Sprintf(", api_key: right-key, tls: {%s, %s}", ca, good), 0, "temporal  ok"},
		"right, by another name": {
			otherFront.Address,
			fmt.Sprintf(", api_key: right-key, tls: {%s, %s, server_name: temporal.example.com}", ca, good), 0, "temporal  ok",
		},
		"right, without a certificate": {keylessFront.Address, fmt.Sprintf(", api_key: right-key, tls: {%s}", ca), 0, "temporal  ok"},
		"unknown authority": {
			front.Address, fmt.Sprintf(", api_key: right-key, tls: {ca: %s, %s}", p.clients.File, good), 1,
			"temporal.tls.ca: the server's certificate is signed by none of those of " + p.clients.File,
		},
		"system's authorities": {
			front.Address, ", api_key: right-key", 1,
			"temporal.tls.ca: the server's certificate is signed by none of the system's certificates",
		},
		"server's certificate expired": {
			expiredFront.Address, fmt.Sprintf(", api_key: right-key, tls: {%s, %s}", ca, good), 1,
			"temporal.tls: the server's certificate cannot be accepted: tls: failed to verify certificate: x509: certificate has expired",
		},
		"wrong server name": {
			otherFront.Address, fmt.Sprintf(", api_key: right-key, tls: {%s, %s}", ca, good), 1,
			"temporal.tls.server_name: the server's certificate is for another name",
		},
		"wrong server name, configured": {
			front.Address, fmt.Sprintf(", api_key: right-key, tls: {%s, %s, server_name: b.example.com}", ca, good),
			1, "temporal.tls.server_name: ",
		},
		"wrong certificate": {
			front.Address,
			fmt.Sprintf(", api_key: right-key, tls: {%s, %s}", ca, p.client(t, "stranger", p.servers, p.soon)), 1,
			"temporal.tls.cert: the server refuses the certificate of " + strings.Replace(cert, "client", "stranger", 1),
		},
		"certificate expired": {
			front.Address, fmt.Sprintf(", api_key: right-key, tls: {%s, %s}", ca, old), 2,
			"temporal.tls.cert: " + oldCert + " expired on " + p.past.UTC().Format(time.DateOnly),
		},
		"no certificate": {
			front.Address, fmt.Sprintf(", api_key: right-key, tls: {%s}", ca), 1,
			"temporal.tls.cert: is empty, and the server may require a certificate",
		},
		"wrong API key": {
			front.Address, fmt.Sprintf(", api_key: wrong-key, tls: {%s, %s}", ca, good), 1,
			"temporal.api_key: the server does not accept the key: Request unauthorized.",
		},
		"no API key": {
			front.Address, fmt.Sprintf(", tls: {%s, %s}", ca, good), 1,
			"temporal.api_key: is empty, and the server requires a key",
		},
		"unreadable key file": {
			front.Address, fmt.Sprintf(", tls: {%s, cert: %s, key: %s}", ca, cert, unreadable), 2,
			"temporal.tls.key: the file cannot be read: read " + unreadable,
		},
		"key file that is not there": {
			front.Address, fmt.Sprintf(", tls: {%s, cert: %s, key: %s}", ca, cert, "nowhere.key"), 2,
			"temporal.tls.key: the file cannot be read: open ",
		},
		"a server without TLS": {s.TemporalAt, ", tls: {}", 1, "temporal.tls: the server at temporal.address does not use TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := s.Configure(stack.GatewayOptions{TemporalAt: test.at, Temporal: test.section})
			stdout, stderr, err := g.Command(t.Context(), "config", "check")
			if exitCode(err) != test.code || !strings.Contains(stdout+stderr, test.want) || strings.Contains(stdout+stderr, "right-key") {
				t.Errorf("%v: %s%s\nwant code %d, %s", err, stdout, stderr, test.code, test.want)
			}
		})
	}
}

// TestTemporalManaged: where the credentials may not set up a namespace, what it lacks is named with a command each, and the worker
// starts once it is there.
func TestTemporalManaged(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	front := stack.NewTemporalFront(t, s.TemporalAt, stack.FrontOptions{})
	for _, method := range []string{"ListSearchAttributes", "AddSearchAttributes"} {
		front.Refuse(operatorService+method, stack.FrontRefusal{Code: grpcDenied, Message: "Request unauthorized."})
	}
	front.Refuse(workflowService+"CountWorkflowExecutions", stack.FrontRefusal{Code: grpcInvalid, Message: "invalid search attribute"})
	g := s.Configure(stack.GatewayOptions{TemporalAt: front.Address, Video: "poll_min: 200ms, poll_max: 1s, retention: 240h"})
	g.Launch()
	wants := []string{
		`namespace \"` + s.Namespace + `\" lacks the search attribute TaskModel`,
		"temporal operator search-attribute create --namespace " + s.Namespace + " --name TaskModel --type Keyword",
		"temporal operator search-attribute create --namespace " + s.Namespace + " --name TaskDue --type Keyword",
		"video.retention and background.retention need 336h0m0s",
		"temporal operator namespace update --namespace " + s.Namespace + " --retention 336h",
	}
	testwait.Eventually(t, "/readyz names what is missing", stack.ReadyTimeout, func() bool {
		answer, err := g.Send(t.Context(), stack.Request{Path: "/readyz?for=video"})
		if err != nil || answer.Status != http.StatusServiceUnavailable {
			return false
		}
		for _, want := range wants {
			if !strings.Contains(string(answer.Body), want) {
				return false
			}
		}
		return true
	})
	_, stderr, err := g.Command(t.Context(), "config", "check")
	for _, want := range wants {
		if want = strings.ReplaceAll(want, `\`, ""); exitCode(err) != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%v: %s\nlacks %s", err, stderr, want)
		}
	}
	testwait.Eventually(t, "the worker's log names the commands", stack.ReadyTimeout, func() bool {
		return strings.Contains(g.Out.Text(), "temporal is not ready, waiting") &&
			strings.Contains(g.Out.Text(), "--name TaskVendor --type Keyword")
	})
	if strings.Contains(g.Out.Text(), "worker started") {
		t.Error("the worker started without its search attributes")
	}
	front.Refuse(workflowService+"CountWorkflowExecutions", stack.FrontRefusal{}) // an operator ran the commands
	testwait.Eventually(t, "the worker starts", stack.ReadyTimeout, func() bool { return strings.Contains(g.Out.Text(), "worker started") })
	g.AwaitCompleted(g.Create(t.Context(), "sora-2-fast", "on a managed namespace").ID, stack.TaskTimeout)
}

// TestTemporalRotation: certificates and keys are replaced without a restart; meanwhile creates get a Retry-After, and the task
// that is there waits.
func TestTemporalRotation(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s, p := stack.Shared(t), newPKI(t)
	front := stack.NewTemporalFront(t, s.TemporalAt,
		stack.FrontOptions{CertFile: p.serverCert, KeyFile: p.serverKey, Clients: p.clients, APIKey: "first-key"})
	keyFile := filepath.Join(p.folder, "api-key")
	write := func(key string) {
		t.Helper()
		if err := os.WriteFile(keyFile, []byte(key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first-key")
	section := fmt.Sprintf(`, api_key: "${file:%s}", tls: {ca: %s, %s}`, keyFile, p.servers.File, p.client(t, "client", p.clients, p.soon))
	g := s.StartGateway(stack.GatewayOptions{TemporalAt: front.Address, Temporal: section})
	waiting := g.Create(t.Context(), "sora-2-manual", "through it all")
	s.Control.Await("video.get", "sora-2-manual", "", 1)

	// create is the answer to a create that cannot be made.
	create := func() *stack.Answer {
		return g.Call(t, stack.Request{
			Method: http.MethodPost, Path: "/v1/videos",
			Body: map[string]string{"model": "sora-2-fast", "prompt": "not now"},
		})
	}
	refused := func(why string) {
		t.Helper()
		var answer *stack.Answer
		testwait.Eventually(t, why, stack.ReadyTimeout, func() bool {
			answer = create()
			return answer.Status == http.StatusServiceUnavailable
		})
		if answer.Header.Get("Retry-After") == "" || strings.Contains(string(answer.Body), "tls") {
			t.Errorf("%s: %v %s", why, answer.Header, answer.Body)
		}
		if status := g.Call(t, stack.Request{Path: "/healthz"}).Status; status != http.StatusOK {
			t.Errorf("%s: the process is not well: %d", why, status)
		}
	}
	works := func(what string) {
		t.Helper()
		testwait.Eventually(t, what, stack.ReadyTimeout,
			func() bool { return g.Call(t, stack.Request{Path: "/readyz?for=video"}).Status == http.StatusOK })
	}

	before := front.Certificates()
	p.client(t, "client", p.clients, p.past) // the certificate runs out
	front.CutOff()
	refused("the client's certificate has expired")
	testwait.Eventually(t, "the log names the certificate's file", stack.ReadyTimeout, func() bool {
		return strings.Contains(g.Out.Text(), "temporal.tls.cert: the server refuses the certificate of "+filepath.Join(p.folder, "client.pem")+
			", which expired on")
	})
	p.client(t, "client", p.clients, p.soon) // and is renewed
	works("the new certificate is used")
	if now := front.Certificates(); now != before+1 {
		t.Errorf("clients came with %d certificates, %d before", now, before)
	}

	front.SetAPIKey("second-key")
	refused("the key is another one")
	write("second-key")
	works("the new key is used")

	// The earlier task continues, and so do new ones.
	s.Control.Drive(s.Control.Job("through it all").ID, "completed", 100)
	g.AwaitCompleted(waiting.ID, stack.CrashTimeout)
	g.AwaitCompleted(g.Create(t.Context(), "sora-2-fast", "afterwards").ID, stack.CrashTimeout)
	if s.Control.Job("not now") != nil {
		t.Error("a create that was refused was submitted")
	}
	s.WantSubmittedOnce(2)
	g.WantNoSecretsLogged(t, "first-key", "second-key")
}
