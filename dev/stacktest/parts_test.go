package stacktest_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/redis/go-redis/v9"

	"modelrelay/dev/settings"
)

func TestRedisSurvivesKill(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not on PATH")
	}
	data := t.TempDir()
	server := start(t, "redis", "--listen", "127.0.0.1:0", "--data", data)
	c := redis.NewClient(&redis.Options{Addr: server.addr})
	defer c.Close()
	if err := c.Set(t.Context(), "kept", "yes", 0).Err(); err != nil {
		t.Fatal(err)
	}
	server.kill(t)
	again := start(t, "redis", "--listen", server.addr, "--data", data) // fails while the killed one's child lives
	if got, err := c.Get(t.Context(), "kept").Result(); err != nil || got != "yes" {
		t.Errorf("the key after a kill: got %q, %v, want %q", got, err, "yes")
	}
	if got := again.stop(); got != 0 {
		t.Errorf("exit status after SIGTERM: got %d, want 0", got)
	}
}

func TestRedisEmbeddedExpires(t *testing.T) {
	t.Parallel()
	server := start(t, "redis", "--embedded", "--listen", "127.0.0.1:0", "--data", t.TempDir())
	c := redis.NewClient(&redis.Options{Addr: server.addr})
	defer c.Close()
	if err := c.Set(t.Context(), "short", "lived", 300*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Get(t.Context(), "short").Result(); err != nil || got != "lived" {
		t.Errorf("before it expires: got %q, %v, want it there", got, err)
	}
	eventually(t, "the end of the key", func() error {
		if err := c.Get(t.Context(), "short").Err(); !errors.Is(err, redis.Nil) {
			return errors.New("still there")
		}
		return nil
	})
}

func TestS3SurvivesKill(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	args := func(addr string) []string {
		return []string{"s3", "--listen", addr, "--data", data, "--access-key", "some", "--secret-key", "thing", "--bucket", "films"}
	}
	server := start(t, args("127.0.0.1:0")...)
	c := store(t, server.addr, "thing")
	content := make([]byte, 20<<20)
	if _, err := rand.Read(content); err != nil {
		t.Fatal(err)
	}
	_, err := c.PutObject(t.Context(), "films", "a/b.mp4", bytes.NewReader(content), -1, minio.PutObjectOptions{
		PartSize: 8 << 20, ContentType: "video/mp4", UserMetadata: map[string]string{"sum": "x"},
	})
	if err != nil {
		t.Fatal(err)
	}
	server.kill(t)
	start(t, args(server.addr)...)
	object, err := c.GetObject(t.Context(), "films", "a/b.mp4", minio.GetObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	info, err := object.Stat()
	if err != nil || info.ContentType != "video/mp4" || info.UserMetadata["Sum"] != "x" {
		t.Errorf("its metadata after a kill: got %q, %v, %v, want what was put", info.ContentType, info.UserMetadata, err)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, object); err != nil {
		t.Fatal(err)
	}
	if want := sha256.Sum256(content); !bytes.Equal(sum.Sum(nil), want[:]) {
		t.Error("the object after a kill: other bytes than were put")
	}
	if _, err := store(t, server.addr, "wrong").BucketExists(t.Context(), "films"); err == nil {
		t.Error("a wrong secret key: got an answer, want a refusal")
	}
}

func store(t *testing.T, addr, secret string) *minio.Client {
	t.Helper()
	c, err := minio.New(addr, &minio.Options{Creds: credentials.NewStaticV4("some", secret, ""), Region: settings.Region})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestUpstreamSurvivesKill(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	args := []string{"--data", data, "--video-min", "1ms", "--video-max", "2ms"}
	server := start(t, append([]string{"upstream", "--listen", "127.0.0.1:0"}, args...)...)
	id := createJob(t, server.addr)
	server.kill(t)
	start(t, append([]string{"upstream", "--listen", server.addr}, args...)...)
	eventually(t, "the job after a kill", func() error {
		status, body := call(t, http.MethodGet, "http://"+server.addr+"/openai/v1/videos/"+id, "")
		if status != http.StatusOK || !strings.Contains(body, `"completed"`) {
			return errors.New(body)
		}
		return nil
	})
}

func TestPartEndsWithParent(t *testing.T) {
	t.Parallel()
	out := newOutput()
	// The shell has a second command, so that it stays as the parent of the first.
	shell := exec.Command("sh", "-c", `"$0" redis --embedded --listen 127.0.0.1:0 --data "$1"; true`, program(t), t.TempDir())
	shell.Stdout = out
	shell.WaitDelay = startTimeout
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := out.line(t.Context(), "ready ", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = shell.Wait() // returns when the part has closed its stdout too
	if conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(line, "ready ")); err == nil {
		_ = conn.Close()
		t.Error("the part still listens after its parent's death")
	}
}

func TestPartNamesTakenAddress(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, part := range []string{"temporal", "redis", "s3", "upstream"} {
		status, text := runToEnd(t, part, "--listen", taken.Addr().String(), "--data", t.TempDir())
		if status != 1 || !strings.Contains(text, "address already in use") {
			t.Errorf("%s on a taken address: got status %d\n%s\nwant 1 and the reason", part, status, text)
		}
	}
}

func TestPartsOwnTheirFolder(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	start(t, "redis", "--embedded", "--listen", "127.0.0.1:0", "--data", data)
	status, text := runToEnd(t, "redis", "--embedded", "--listen", "127.0.0.1:0", "--data", data)
	if status != 1 || !strings.Contains(text, "in use by another process") {
		t.Errorf("a second process on one folder: got status %d\n%s\nwant a refusal", status, text)
	}
}
