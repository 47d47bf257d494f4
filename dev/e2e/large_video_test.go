package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"testing"

	"modelrelay/dev/e2e/stack"
)

const (
	// largeSize is that of the video of TestLargeVideo, which ends within a part of the archive's upload.
	largeSize = 96<<20 + 12345
	// archiveMemory is how much memory a copy may take, whatever its size.
	archiveMemory = 64 << 20
)

// TestLargeVideo archives a video larger than the memory a copy may take, and reads it at the edges of ranges.
func TestLargeVideo(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	front := s.StartGateway(stack.GatewayOptions{Args: []string{"serve", "--worker=false"}})
	worker := s.StartGateway(stack.GatewayOptions{Args: []string{"worker"}})
	front.AwaitCompleted(front.Create(t.Context(), "sora-2-fast", "small").ID, stack.TaskTimeout) // what a first task makes the worker take

	s.Control.AddRule(map[string]any{"operation": "video.create", "action": "size", "bytes": largeSize})
	before := worker.Memory(t)
	worker.ResetPeakMemory(t)
	id := front.Create(t.Context(), "sora-2-fast", "large").ID
	front.AwaitCompleted(id, stack.CrashTimeout)
	peak := worker.PeakMemory(t)
	t.Logf("worker: %d MB before, %d MB at most while it archived %d MB", before>>20, peak>>20, largeSize>>20)
	if peak-before > archiveMemory {
		t.Errorf("the copy took %d MB of memory, want at most %d", (peak-before)>>20, archiveMemory>>20)
	}

	whole := front.Content(t, id, "")
	status, all := whole.Status, whole.Body
	if sum := sha256.Sum256(all); status != http.StatusOK || len(all) != largeSize ||
		hex.EncodeToString(sum[:]) != s.Control.Job("large").SHA256 {
		t.Fatalf("%d with %d bytes, want the upstream's %d", status, len(all), largeSize)
	}
	const part = 5 << 20 // the archive reads and writes in such pieces
	for _, c := range []struct {
		asked       string
		first, last int // of the answer
	}{
		{"bytes=0-0", 0, 0},
		{fmt.Sprintf("bytes=%d-%d", largeSize-1, largeSize-1), largeSize - 1, largeSize - 1},
		{fmt.Sprintf("bytes=%d-", largeSize-1), largeSize - 1, largeSize - 1},
		{"bytes=-1", largeSize - 1, largeSize - 1},
		{"bytes=-1000", largeSize - 1000, largeSize - 1},
		{fmt.Sprintf("bytes=-%d", largeSize+1), 0, largeSize - 1},
		{fmt.Sprintf("bytes=%d-%d", part-1, part), part - 1, part},
		{fmt.Sprintf("bytes=%d-%d", largeSize-10, largeSize+10), largeSize - 10, largeSize - 1},
	} {
		got := front.Content(t, id, c.asked)
		want := fmt.Sprintf("bytes %d-%d/%d", c.first, c.last, largeSize)
		if got.Status != http.StatusPartialContent || got.Header.Get("Content-Range") != want || !bytes.Equal(got.Body, all[c.first:c.last+1]) {
			t.Errorf("%s: %d, %q, %d bytes; want 206, %q, %d bytes", c.asked, got.Status, got.Header.Get("Content-Range"), len(got.Body), want,
				c.last+1-c.first)
		}
	}
	for _, asked := range []string{fmt.Sprintf("bytes=%d-", largeSize), fmt.Sprintf("bytes=%d-%d", largeSize, largeSize+1)} {
		got := front.Content(t, id, asked)
		if want := fmt.Sprintf("bytes */%d", largeSize); got.Status != http.StatusRequestedRangeNotSatisfiable ||
			got.Header.Get("Content-Range") != want {
			t.Errorf("%s: %d, %q; want 416, %q", asked, got.Status, got.Header.Get("Content-Range"), want)
		}
	}

	two := front.Content(t, id, "bytes=0-9,-5")
	kind, params, err := mime.ParseMediaType(two.Header.Get("Content-Type"))
	if two.Status != http.StatusPartialContent || err != nil || kind != "multipart/byteranges" {
		t.Fatalf("two ranges: %d %s", two.Status, two.Header.Get("Content-Type"))
	}
	parts := multipart.NewReader(bytes.NewReader(two.Body), params["boundary"])
	for _, want := range [][]byte{all[:10], all[largeSize-5:]} {
		part, err := parts.NextPart()
		if err != nil {
			t.Fatalf("two ranges: %v", err)
		}
		if got, err := io.ReadAll(part); err != nil || !bytes.Equal(got, want) || part.Header.Get("Content-Type") != "video/mp4" {
			t.Errorf("two ranges: got %d bytes of %s, %v; want %d", len(got), part.Header.Get("Content-Type"), err, len(want))
		}
	}
}
