package e2e_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testcert"
	"modelrelay/storage/testwait"
)

// What a secured Redis of these tests knows: a user of the access list with the rights of the manual's page, and another
// that sees everything.
const (
	redisUser     = "gateway"
	redisPassword = "redis-right-password"
	redisPrefix   = "shop:"
	redisACL      = "user " + redisUser + " on >" + redisPassword + " ~" + redisPrefix + "* &" + redisPrefix + "* +@all -@admin -@dangerous"
	seerPassword  = "seer-password"
)

// rewriteSection replaces a section that stands on one line of a gateway's configuration.
func rewriteSection(t *testing.T, g *stack.Gateway, name, text string) {
	t.Helper()
	config, err := os.ReadFile(g.ConfigFile)
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^` + name + `: \{.*\}$`)
	if !line.Match(config) {
		t.Fatalf("no section %s in\n%s", name, config)
	}
	if err := os.WriteFile(g.ConfigFile, line.ReplaceAllLiteral(config, []byte(name+": "+text)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// securedRedis is a Redis behind TLS that wants certificates of clients, and users of its access list alone.
type securedRedis struct {
	*storagetest.Process
	*pki
	t    *testing.T
	seer *redis.Client // sees all keys, of database 3
}

func newSecuredRedis(t *testing.T) *securedRedis {
	t.Helper()
	p := newPKI(t)
	process := storagetest.StartSecured(t, storagetest.SecureFiles{Cert: p.serverCert, Key: p.serverKey, CA: p.clients.File},
		redisACL, "user seer on >"+seerPassword+" ~* &* +@all", "user poor on >"+redisPassword+" ~other:* &other:* +@all -@admin -@dangerous",
		"user default off", `save ""`)
	return &securedRedis{Process: process, pki: p, t: t, seer: process.Client(t, func(o *redis.Options) {
		o.Username, o.Password, o.DB, o.TLSConfig = "seer", seerPassword, 3, p.seer(t)
	})}
}

// seer is what a client of the test's own speaks TLS by.
func (p *pki) seer(t *testing.T) *tls.Config {
	t.Helper()
	cert, key := p.files("seer")
	p.clients.Sign(t, "seer", p.soon, cert, key)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: p.servers.Pool(), ServerName: "localhost", Certificates: []tls.Certificate{pair}}
}

// url leads to it by the name in its certificate.
func (r *securedRedis) url(scheme string) string {
	_, port, err := net.SplitHostPort(r.Address)
	if err != nil {
		r.t.Fatal(err)
	}
	return scheme + "://localhost:" + port + "/3?dial_timeout=20s"
}

// section is one that is right but for what a test puts in its places.
func (r *securedRedis) section(url, user, password, tlsMembers string) string {
	return fmt.Sprintf(`{url: "%s", username: %s, password: %s, prefix: "%s", tls: {%s}}`, url, user, password, redisPrefix, tlsMembers)
}

// wantPrefixed: every key of the gateway's begins with its prefix.
func wantPrefixed(t *testing.T, seer redis.Cmdable, prefix string) {
	t.Helper()
	keys, err := seer.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) < 5 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, prefix) {
			t.Errorf("the key %s has not the prefix", key)
		}
	}
}

// lives has a gateway do what needs Redis: calls of tokens of the file and made at run time, a task to its end, and the operator's
// commands.
func lives(t *testing.T, g *stack.Gateway, round string) {
	t.Helper()
	chat := stack.Request{
		Method: http.MethodPost, Path: "/v1/chat/completions",
		Body: map[string]any{"model": "gpt-4o", "messages": []map[string]string{{"role": "user", "content": "hi"}}},
	}
	made := regexp.MustCompile(`(?m)^key +(\S+)$`).FindStringSubmatch(g.Run("token", "create", "--name", "made-"+round, "--group", "default",
		"--models", "*", "--requests-per-minute", "600", "--budget", "5"))
	if made == nil {
		t.Fatal("no key of the token that was made")
	}
	for _, token := range []string{stack.Token, made[1]} {
		chat.Token = token
		// A gateway that was ready may still notice, part by part, that a primary is gone: then a client tries again, as the answer says.
		var answer *stack.Answer
		testwait.Eventually(t, round+": a chat is not put off", stack.ReadyTimeout, func() bool {
			answer = g.Call(t, chat)
			return answer.Status != http.StatusServiceUnavailable
		})
		if answer.Status != http.StatusOK {
			t.Errorf("%s: a chat: %d %s", round, answer.Status, answer.Body)
		}
	}
	g.AwaitCompleted(g.Create(t.Context(), "sora-2-fast", round).ID, stack.TaskTimeout)
	testwait.Eventually(t, "usage is written", stack.ReadyTimeout, func() bool {
		return strings.Contains(g.Run("usage", "--by", "token"), "tok_")
	})
}

// TestRedisSecured: over TLS with an authority and a certificate of one's own, as a user of the access list with no more rights than the
// document says, below a prefix: everything works, and a certificate that runs out and is renewed costs nothing but the wait.
func TestRedisSecured(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	r := newSecuredRedis(t)
	s := stack.Shared(t)
	g := s.Configure(stack.GatewayOptions{})
	client := r.client(t, "client", r.clients, r.soon)
	rewriteSection(t, g, "redis", r.section(r.url("rediss"), redisUser, redisPassword, "ca: "+r.servers.File+", "+client))
	g.Start()
	lives(t, g, "first")
	wantPrefixed(t, r.seer, redisPrefix)
	stdout, stderr, err := g.Command(t.Context(), "config", "check", "--connect")
	if err != nil || strings.Contains(stdout, "unknown") {
		t.Errorf("%v\n%s%s", err, stdout, stderr)
	}

	// The certificate runs out; Redis counts as away, calls go on, and the task that is there waits.
	waiting := g.Create(t.Context(), "sora-2-manual", "through it all")
	s.Control.Await("video.get", "sora-2-manual", "", 1)
	r.client(t, "client", r.clients, r.past)
	cut := func() {
		t.Helper()
		if err := r.seer.ClientKillByFilter(t.Context(), "USER", redisUser).Err(); err != nil {
			t.Fatal(err)
		}
	}
	cut()
	testwait.Eventually(t, "the log names the certificate", stack.ReadyTimeout, func() bool {
		return strings.Contains(g.Out.Text(), "see redis.tls.cert")
	})
	chat := stack.Request{
		Method: http.MethodPost, Path: "/v1/chat/completions",
		Body: map[string]any{"model": "gpt-4o", "messages": []map[string]string{{"role": "user", "content": "hi"}}},
	}
	if answer := g.Call(t, chat); answer.Status != http.StatusOK {
		t.Errorf("a chat while Redis refuses: %d %s", answer.Status, answer.Body)
	}
	r.client(t, "client", r.clients, r.soon) // and is renewed
	testwait.Eventually(t, "the new certificate is used", stack.ReadyTimeout, func() bool {
		return g.Call(t, stack.Request{Path: "/readyz?for=video"}).Status == http.StatusOK
	})
	s.Control.Drive(s.Control.Job("through it all").ID, "completed", 100)
	g.AwaitCompleted(waiting.ID, stack.CrashTimeout)
	lives(t, g, "second")
	wantPrefixed(t, r.seer, redisPrefix)
	s.WantSubmittedOnce(3)
	g.WantNoSecretsLogged(t, redisPassword)
}

// TestRedisSecuredSentinels: the same behind sentinels that speak TLS too, and name servers by addresses: writes go on after the
// primary is killed.
func TestRedisSecuredSentinels(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	p := newPKI(t)
	cert, key := p.files("member") // each is a server, and a client of the others
	authority := testcert.NewAuthority(t)
	authority.Sign(t, "redis.internal", p.soon, cert, key)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	group := storagetest.StartSecuredFailover(t, storagetest.SecureFiles{Cert: cert, Key: key, CA: authority.File},
		&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authority.Pool(), ServerName: "redis.internal", Certificates: []tls.Certificate{pair}})
	s := stack.Shared(t)
	g := s.Configure(stack.GatewayOptions{})
	rewriteSection(t, g, "redis", fmt.Sprintf(`{url: "rediss://nobody:6379/0", username: %s, password: %s, prefix: "shop:", tls: {ca: %s, cert: %s, key: %s, server_name: redis.internal}, sentinel: {master: %s, addresses: [%s], password: %s}}`,
		storagetest.FailoverUser, storagetest.FailoverPassword, authority.File, cert, key, storagetest.FailoverMaster,
		strings.Join(group.Addresses(), ", "), storagetest.FailoverSentinelPassword))
	g.Start()
	lives(t, g, "before")
	wantPrefixed(t, group.Client(t, 0), redisPrefix)
	killed := group.KillPrimary(t)
	testwait.Eventually(t, "the promoted replica is used", stack.ReadyTimeout, func() bool {
		_, _, err := g.Command(t.Context(), "token", "update", "made-before", "--requests-per-minute", "500")
		return err == nil
	})
	testwait.Eventually(t, "the gateway is ready", stack.ReadyTimeout, func() bool {
		return g.Call(t, stack.Request{Path: "/readyz"}).Status == http.StatusOK
	})
	lives(t, g, "after")
	wantPrefixed(t, group.Client(t, 1-killed), redisPrefix)
}

// TestRedisBadInput: whatever is wrong with the way to a secured Redis, the command that tries it ends with an error that names the
// key or the file, and no secret.
func TestRedisBadInput(t *testing.T) {
	t.Parallel()
	r := newSecuredRedis(t)
	plain := storagetest.StartProcess(t, `save ""`)
	s := stack.SharedS3(t)
	ca := "ca: " + r.servers.File
	good := ca + ", " + r.client(t, "client", r.clients, r.soon)
	old := r.client(t, "expired", r.clients, r.past)
	oldCert, _ := r.files("expired")
	cert, key := r.files("client")
	unreadable := filepath.Join(r.folder, "unreadable.key")
	if err := os.Mkdir(unreadable, 0o700); err != nil { // of a file's rights the superuser takes no notice
		t.Fatal(err)
	}
	url := r.url("rediss")
	for name, test := range map[string]struct {
		section string
		code    int    // the command's; 1 where something else is missing in any case
		want    string // "": Redis is well
	}{
		"right":             {r.section(url, redisUser, redisPassword, good), 1, ""},
		"unknown authority": {r.section(url, redisUser, redisPassword, "ca: "+r.clients.File), 1, "not signed by an authority in redis.tls.ca"},
		"system's authorities": {
			fmt.Sprintf(`{url: "%s", username: gateway, password: %s}`, url, redisPassword), 1,
			"not signed by an authority in redis.tls.ca",
		},
		"wrong server name": {
			r.section(url, redisUser, redisPassword, good+", server_name: redis.example.com"), 1,
			"see redis.tls.server_name",
		},
		"no certificate": {r.section(url, redisUser, redisPassword, ca), 1, "see redis.tls.cert and redis.tls.key"},
		"a stranger's": {
			r.section(url, redisUser, redisPassword, ca+", "+r.client(t, "stranger", r.servers, r.soon)), 1,
			"see redis.tls.cert and redis.tls.key",
		},
		"certificate expired": {r.section(url, redisUser, redisPassword, ca+", "+old), 2, "redis.tls.cert: " + oldCert + " expired on "},
		"unreadable key file": {
			r.section(url, redisUser, redisPassword, fmt.Sprintf("%s, cert: %s, key: %s", ca, cert, unreadable)), 2,
			"redis.tls.key: the file cannot be read: read " + unreadable,
		},
		"key without cert": {
			r.section(url, redisUser, redisPassword, ca+", key: "+key), 2,
			"redis.tls.cert: is required with key",
		},
		"tls without rediss": {
			r.section(r.url("redis"), redisUser, redisPassword, good), 2,
			"redis.tls: requires a redis.url that begins with rediss://",
		},
		"wrong password":         {r.section(url, redisUser, "redis-wrong-password", good), 1, "see redis.username, redis.password"},
		"no such user":           {r.section(url, "nobody", redisPassword, good), 1, "see redis.username, redis.password"},
		"no user":                {fmt.Sprintf(`{url: "%s", tls: {%s}}`, url, good), 1, "see redis.username, redis.password"},
		"no right to the prefix": {r.section(url, "poor", redisPassword, good), 1, "see redis.username, redis.password"},
		"a server without TLS":   {fmt.Sprintf(`{url: "rediss://%s/0", tls: {%s}}`, plain.Address, good), 1, "redis.url begins with rediss://"},
		"a server with TLS": {
			fmt.Sprintf(`{url: "%s", username: gateway, password: %s}`, r.url("redis"), redisPassword), 1,
			"a server with TLS requires a redis.url that begins with rediss://",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := s.Configure(stack.GatewayOptions{})
			rewriteSection(t, g, "redis", test.section)
			stdout, stderr, err := g.Command(t.Context(), "config", "check", "--connect")
			said := stdout + stderr
			well := regexp.MustCompile(`(?m)^redis +(ok|warning) `).MatchString(said)
			if exitCode(err) != test.code || !strings.Contains(said, test.want) || well != (test.want == "") ||
				strings.Contains(said, redisPassword) {
				t.Errorf("%v: %s\nwant code %d, %s", err, said, test.code, test.want)
			}
		})
	}
}
