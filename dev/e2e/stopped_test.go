package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	enumspb "go.temporal.io/api/enums/v1"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

// TestStoppedGateway: one of two gateways stands still with an unread create in its socket. The client's SDK repeats the create at the
// other gateway, which makes the task. When the first gateway continues it reads the create, and makes no second task.
func TestStoppedGateway(t *testing.T) {
	t.Parallel()
	s := stack.Shared(t)
	options := stack.GatewayOptions{Args: []string{"serve", "--worker=false"}}
	stopped, other := s.StartGateway(options), s.StartGateway(options)
	s.StartGateway(stack.GatewayOptions{Args: []string{"worker"}})
	// A connection that the stopped gateway has accepted, and one that it has not.
	used := dialGateway(t, stopped)
	if resp := used.ask(t, "GET /v1/models", ""); resp.StatusCode != http.StatusOK {
		t.Fatalf("models: %d", resp.StatusCode)
	}
	stopped.Pause()
	fresh := dialGateway(t, stopped)
	client := http.Client{Transport: firstAt{stopped, &http.Transport{ResponseHeaderTimeout: impatience}}}
	sdk := other.SDK(option.WithMaxRetries(1), option.WithHTTPClient(&client))
	bodies := map[string]*rawConn{"a connection that was used": used, "a new connection": fresh}
	for name, conn := range bodies {
		conn.write(t, "POST /v1/videos", createBody(name))
	}
	ids := make(map[string]string)
	// The SDK's own: it has closed the connection of its first try when it repeats it. Until then the others have waited long enough.
	video, err := sdk.Videos.New(t.Context(), openai.VideoNewParams{Prompt: "the connection of an SDK", Model: "sora-2-fast"})
	if err != nil {
		t.Fatal(err)
	}
	ids["the connection of an SDK"] = video.ID
	for name := range bodies {
		ids[name] = createRaw(t, other, name)
	}
	stopped.Resume()
	for name, conn := range bodies {
		var task struct{ ID string }
		resp := conn.read(t)
		if err := json.NewDecoder(resp.Body).Decode(&task); err != nil || task.ID != ids[name] {
			t.Errorf("%s: the stopped gateway answers %d %q, %v; the task is %s", name, resp.StatusCode, task.ID, err, ids[name])
		}
	}
	testwait.Eventually(t, "the stopped gateway has read each create", stack.ReadyTimeout, func() bool {
		return strings.Count(stopped.Out.Text(), "operation=/v1/videos ") >= len(ids)
	})
	for _, id := range ids {
		other.AwaitCompleted(id, stack.TaskTimeout)
	}
	if n := s.CountTasks(t.Context()); n != len(ids) {
		t.Errorf("%d tasks for %d creates", n, len(ids))
	}
	s.WantSubmittedOnce(len(ids))
}

// firstAt sends the first try of each request to a gateway.
type firstAt struct {
	gateway   *stack.Gateway
	transport *http.Transport
}

// RoundTrip implements [http.RoundTripper].
func (f firstAt) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("X-Stainless-Retry-Count") == "0" {
		r = r.Clone(r.Context())
		r.URL.Host = f.gateway.Address
	}
	return f.transport.RoundTrip(r)
}

func createBody(prompt string) string {
	return fmt.Sprintf(`{"model": "sora-2-fast", "prompt": %q}`, prompt)
}

// createRaw makes the task of createBody, as an SDK repeats a create.
func createRaw(t *testing.T, g *stack.Gateway, prompt string) (id string) {
	t.Helper()
	var task struct{ ID string }
	g.CallJSON(t, stack.Request{
		Method: http.MethodPost, Path: "/v1/videos", Body: createBody(prompt), Header: map[string]string{"X-Stainless-Retry-Count": "1"},
	}, &task)
	return task.ID
}

// rawConn is a client's connection whose requests may wait unread.
type rawConn struct {
	net.Conn
	reader *bufio.Reader
}

func dialGateway(t *testing.T, g *stack.Gateway) *rawConn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", g.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(stack.ReadyTimeout)); err != nil {
		t.Fatal(err)
	}
	return &rawConn{conn, bufio.NewReader(conn)}
}

func (c *rawConn) write(t *testing.T, line, body string) {
	t.Helper()
	_, err := fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"X-Stainless-Retry-Count: 0\r\nContent-Length: %d\r\n\r\n%s", line, stack.Token, len(body), body)
	if err != nil {
		t.Fatal(err)
	}
}

func (c *rawConn) read(t *testing.T) *http.Response {
	t.Helper()
	resp, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func (c *rawConn) ask(t *testing.T, line, body string) *http.Response {
	t.Helper()
	c.write(t, line, body)
	resp := c.read(t)
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp
}

// TestStoppedWorker: a worker stands still in the middle of a submit until another worker has taken its task. When it continues it pays
// no second time.
func TestStoppedWorker(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	for name, accepted := range map[string]bool{"before it claims the attempt": false, "while the vendor answers": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stack.Shared(t)
			front := s.StartGateway(stack.GatewayOptions{Args: []string{"serve", "--worker=false"}})
			toArchive := stack.NewLink(t, s.S3At)
			worker := stack.GatewayOptions{Args: []string{"worker"}, ArchiveAt: toArchive.Addr()}
			stopped := s.StartGateway(worker)
			if accepted {
				s.Control.AddRule(map[string]any{"operation": "video.create", "action": "hang", "accept": true})
			} else {
				toArchive.Hold(stack.Towards)
			}
			video := front.Create(t.Context(), "sora-2-fast", name)
			if accepted {
				s.Control.Await("video.create", "sora-2-fast", "accepted", 1)
			} else {
				awaitSubmit(t, s, video.ID)
			}
			stopped.Pause()
			worker.ArchiveAt = ""
			s.StartGateway(worker)
			ended := front.AwaitEnd(video.ID, stack.CrashTimeout)
			if completed := ended.Status == openai.VideoStatusCompleted; completed == accepted {
				t.Errorf("the task ended as %s: %s %s", ended.Status, ended.Error.Code, ended.Error.Message)
			}
			stopped.Resume()
			toArchive.Restore()
			s.Control.Clear()
			testwait.Eventually(t, "the worker ends the submit", stack.TaskTimeout, func() bool {
				log := stopped.Out.Text()
				return strings.Contains(log, "msg=submitted") || strings.Contains(log, `msg="submit failed"`) ||
					strings.Contains(log, `msg="attempt not begun"`)
			})
			s.WantSubmittedOnce(1)
		})
	}
}

// awaitSubmit returns when a worker has begun the submit of a task.
func awaitSubmit(t *testing.T, s *stack.Stack, id string) {
	t.Helper()
	temporal := s.TemporalClient()
	testwait.Eventually(t, "the submit is started", stack.ReadyTimeout, func() bool {
		about, err := temporal.DescribeWorkflowExecution(t.Context(), id, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, act := range about.GetPendingActivities() {
			if act.GetActivityType().GetName() == "Submit" && act.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED {
				return true
			}
		}
		return false
	})
}
