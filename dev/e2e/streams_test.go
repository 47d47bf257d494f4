package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

const (
	// manyStreams are open at once.
	manyStreams = 500
	// streamModel makes the upstream send streamWords words, one every 20 ms.
	streamModel = "gpt-4o-100chunks-20ms"
	streamWords = 100
	// streamPatience bounds a stream on a busy machine.
	streamPatience = 4 * time.Minute
)

// TestStreamsOnOneCore: 500 streams that are open at once all complete, each with every word, when one core has to do for
// the gateway, the upstream, Redis and the clients.
func TestStreamsOnOneCore(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.NewRelay(t, stack.OnOneCore)
	g := s.StartGateway(stack.GatewayOptions{Channels: s.AnyModel()})
	s.Control.AddRule(map[string]any{"operation": "chat", "model": streamModel, "action": "stall", "chunks": 2})
	driver := s.Launch("driver", os.Args[0], "-drive-streams", g.URL())
	cores := driver.KernelStatus(t, "Cpus_allowed_list")
	for _, p := range []*stack.Process{s.Redis, s.Upstream, g.Process} {
		if got := p.KernelStatus(t, "Cpus_allowed_list"); got != cores || strings.ContainsAny(got, "-,") {
			t.Errorf("%s may use the cores %s, and the driver %s, want the same one", p.Name, got, cores)
		}
	}
	s.Control.Await("chat", streamModel, "open", manyStreams)
	s.Control.Clear() // none may go on before all are there
	select {
	case <-driver.Done:
	case <-time.After(streamPatience):
		t.Fatal("the streams do not end")
	}
	if want := fmt.Sprintf("%d streams are whole", manyStreams); !strings.Contains(driver.Out.Text(), want) {
		t.Errorf("the driver did not say %q", want)
	}
}

// driveStreams opens streams at a gateway, checks each, says so, and returns the exit code.
func driveStreams(ctx context.Context, gateway string) int {
	ctx, cancel := context.WithTimeout(ctx, streamPatience)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{}}
	var clients sync.WaitGroup
	broken := make(chan error, manyStreams)
	for range manyStreams {
		clients.Go(func() {
			if err := wholeStream(ctx, client, gateway); err != nil {
				broken <- err
			}
		})
	}
	clients.Wait()
	close(broken)
	failed := 0
	for err := range broken {
		failed++
		fmt.Fprintln(os.Stdout, "broken:", err)
	}
	fmt.Fprintf(os.Stdout, "%d streams are whole\n", manyStreams-failed)
	return min(failed, 1)
}

// wholeStream reads one stream and wants every word in its order, the reason of the end, [DONE] and a clean end.
func wholeStream(ctx context.Context, client *http.Client, gateway string) error {
	req, err := streamRequest(ctx, gateway, streamModel)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s: %d bytes, %w", resp.Status, len(raw), err)
	}
	events := newWords(bytes.NewReader(raw))
	for range streamWords {
		if err := events.next(); err != nil {
			return err
		}
	}
	return events.end()
}

// streamRequest asks for a stream.
func streamRequest(ctx context.Context, gateway, model string) (*http.Request, error) {
	body := fmt.Sprintf(`{"model":%q,"stream":true,"messages":[{"role":"user","content":"go"}]}`, model)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, gateway+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+stack.Token)
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

// words reads a stream of numbered words, "tok0 " and so on.
type words struct {
	lines *bufio.Reader
	read  int
	bytes int64
	done  string // the reason of the end
}

func newWords(stream io.Reader) *words { return &words{lines: bufio.NewReader(stream)} }

// data returns what the next event holds.
func (w *words) data() (string, error) {
	line, err := w.lines.ReadString('\n')
	blank, ended := w.lines.ReadString('\n')
	w.bytes += int64(len(line) + len(blank))
	data, ok := strings.CutPrefix(line, "data: ")
	if err := errors.Join(err, ended); err != nil || !ok || blank != "\n" {
		return "", fmt.Errorf("after word %d: %q and %q, no event: %w", w.read, line, blank, err)
	}
	return strings.TrimSpace(data), nil
}

// chunk reads the text of the next event.
func (w *words) chunk() (string, error) {
	data, err := w.data()
	if err != nil {
		return "", err
	}
	var chunk struct {
		Choices []struct {
			Delta  struct{ Content string }
			Finish string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal([]byte(data), &chunk); err != nil || len(chunk.Choices) != 1 {
		return "", fmt.Errorf("after word %d: %.200s: %w", w.read, data, err)
	}
	w.done += chunk.Choices[0].Finish
	return chunk.Choices[0].Delta.Content, nil
}

// next wants the next word.
func (w *words) next() error {
	text, err := w.chunk()
	if w.read == 0 && err == nil && text == "" { // the event of the role
		text, err = w.chunk()
	}
	if want := "tok" + strconv.Itoa(w.read); err == nil && strings.TrimSpace(text) != want {
		err = fmt.Errorf("got %q, want %q", text, want)
	}
	w.read++
	return err
}

// end requires the reason of the end and the last line, and nothing after it.
func (w *words) end() error {
	if text, err := w.chunk(); err != nil || text != "" || w.done != "stop" {
		return fmt.Errorf("after the last word: %q, %q, %w", text, w.done, err)
	}
	if data, err := w.data(); err != nil || data != "[DONE]" {
		return fmt.Errorf("at the end: %q, %w", data, err)
	}
	if rest, err := io.ReadAll(w.lines); err != nil || len(rest) > 0 {
		return fmt.Errorf("behind the end: %q, %w", rest, err)
	}
	return nil
}

// TestClientsThatLeave: a client that goes away in the middle of its stream frees its upstream.
func TestClientsThatLeave(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.SharedRelay(t)
	g := s.StartGateway(stack.GatewayOptions{Channels: s.AnyModel()})
	const clients, model = 20, "gpt-4o-100000chunks-50ms"
	for gone := range clients {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := streamRequest(ctx, g.URL(), model)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := newWords(resp.Body).next(); err != nil {
			t.Fatal(err)
		}
		cancel()
		_ = resp.Body.Close()
		s.Control.Await("chat", model, "canceled", gone+1)
	}
}

// TestStreamCutWithinAnEvent: an upstream that breaks off in the middle of an event leaves the SDK with whole events and our
// error, not with half an event that it cannot parse.
func TestStreamCutWithinAnEvent(t *testing.T) {
	t.Parallel()
	s := stack.SharedRelay(t)
	g := s.StartGateway(stack.GatewayOptions{Channels: s.AnyModel()})
	sdk := g.SDK(option.WithMaxRetries(0))
	params := openai.ChatCompletionNewParams{Model: streamModel, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("go")}}
	for _, after := range []int{1000, 1100, 1200, 1300} { // an event is of about 260
		s.Control.AddRule(map[string]any{"operation": "chat", "action": "cut", "bytes": after, "times": 1})
		stream := sdk.Chat.Completions.NewStreaming(t.Context(), params)
		chunks := 0
		for stream.Next() {
			chunks++
		}
		err := stream.Err()
		if chunks < 3 || err == nil || !strings.Contains(err.Error(), "upstream_error") {
			t.Errorf("cut after %d bytes: got %d chunks and then %v, want our error", after, chunks, err)
		}
	}
}

const (
	// offered is about what the upstream would send a reader that keeps up.
	offered = 200 << 20
	// readAhead is what may be taken of it for a reader that stands still: what the kernel's buffers of two connections hold,
	// and no more than a few pieces of 32 KiB in the gateway. Linux gives the sending end 4 MiB and a receiving one, on a
	// generously set up machine, 32 MiB.
	readAhead = 100 << 20
	// grownMost is how much memory the gateway may then have more than before. The stream's own buffers are under 100 KiB;
	// the rest is what the garbage collector has not yet been round to.
	grownMost = 16 << 20
)

// TestSlowReader: a client that stops reading stops the upstream. The gateway's memory stays bounded, other clients get whole
// streams in the meantime, and nothing is lost when the client reads on.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.SharedRelay(t)
	g := s.StartGateway(stack.GatewayOptions{Channels: s.AnyModel()})
	const model = "gpt-4o-800000chunks-1ns" // events of about 260 bytes
	if err := wholeStream(t.Context(), http.DefaultClient, g.URL()); err != nil {
		t.Fatal(err)
	}
	before := g.Memory(t)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(64 << 10) //nolint:forcetypeassert // it was asked for
		}
		return conn, err
	}}}
	req, err := streamRequest(ctx, g.URL(), model)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	stream := newWords(resp.Body)
	for range 100 {
		if err := stream.next(); err != nil {
			t.Fatal(err)
		}
	}
	sent := standstill(s, model)
	grown := g.Memory(t) - before
	t.Logf("the upstream sent %d KiB, of which the client read %d; the gateway's memory grew by %d KiB", sent>>10, stream.bytes>>10, grown>>10)
	if sent > readAhead || sent < stream.bytes {
		t.Errorf("%d bytes of %d were taken for a client that read %d, want at most %d", sent, offered, stream.bytes, readAhead)
	}
	if grown > grownMost {
		t.Errorf("the gateway's memory grew by %d bytes, want at most %d", grown, grownMost)
	}
	if err := wholeStream(t.Context(), http.DefaultClient, g.URL()); err != nil {
		t.Errorf("another client, while the first does not read: %v", err)
	}
	for stream.bytes < sent+1<<20 { // the delayed bytes, and some more
		if err := stream.next(); err != nil {
			t.Fatal(err)
		}
	}
}

// standstill waits until the upstream gets rid of nothing more, and returns how much it was.
func standstill(s *stack.Stack, model string) int64 {
	s.T.Helper()
	const quiet = 60 // looks without a change
	var last int64
	same := 0
	testwait.Eventually(s.T, "the upstream stands still", stack.ReadyTimeout, func() bool {
		sent := s.Control.Sent(model)
		if same++; sent != last {
			same = 0
		}
		last = sent
		return same == quiet
	})
	return last
}
