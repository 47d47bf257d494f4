package storage_test

import (
	"crypto/tls"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testcert"
	"modelrelay/storage/testwait"
)

// TestSentinelSecured: servers and sentinels speak TLS alone and want certificates; sentinels name servers by their addresses, which
// are in no certificate. Writes continue after the primary is killed.
func TestSentinelSecured(t *testing.T) {
	t.Parallel()
	authority, dir := testcert.NewAuthority(t), t.TempDir()
	files := storagetest.SecureFiles{Cert: filepath.Join(dir, "member.pem"), Key: filepath.Join(dir, "member.key"), CA: authority.File}
	authority.Sign(t, "redis.internal", time.Now().Add(time.Hour), files.Cert, files.Key)
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: authority.Pool(), ServerName: "redis.internal",
		Certificates: []tls.Certificate{pair},
	}
	group := storagetest.StartSecuredFailover(t, files, config)
	client, err := storage.OpenRedis("rediss://unused:9/0", &storage.RedisOptions{
		Username: storagetest.FailoverUser, Password: storagetest.FailoverPassword, Prefix: "shop:",
		TLS: func() (*tls.Config, error) { return config, nil },
		Sentinel: storage.RedisSentinel{
			Master: storagetest.FailoverMaster, Addresses: group.Addresses(),
			Password: storagetest.FailoverSentinelPassword,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if err := storage.PingRedis(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	group.KillPrimary(t)
	testwait.Eventually(t, "the promoted primary", storagetest.Patience, func() bool { return storage.PingRedis(t.Context(), client) == nil })
}

// TestSecuredOrNot: a URL whose scheme is not the server's names the key.
func TestSecuredOrNot(t *testing.T) {
	t.Parallel()
	authority, dir := testcert.NewAuthority(t), t.TempDir()
	files := storagetest.SecureFiles{Cert: filepath.Join(dir, "server.pem"), Key: filepath.Join(dir, "server.key"), CA: authority.File}
	authority.Sign(t, "localhost", time.Now().Add(time.Hour), files.Cert, files.Key)
	plain, secured := storagetest.StartProcess(t, `save ""`), storagetest.StartSecured(t, files, `save ""`)
	for url, want := range map[string]string{
		"rediss://" + plain.Address:  "does not answer a TLS handshake in time: redis.url begins with rediss://",
		"redis://" + secured.Address: "a server with TLS requires a redis.url that begins with rediss://",
	} {
		client, err := storage.OpenRedis(url, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		if err := storage.PingRedis(t.Context(), client); !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", url, err, want)
		}
	}
}
