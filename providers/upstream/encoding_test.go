package upstream_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"modelrelay/providers/upstream"
)

// encoded is a text in an encoding.
func encoded(t *testing.T, encoding, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "br":
		w = brotli.NewWriter(&out)
	default:
		var err error
		if w, err = zstd.NewWriter(&out); err != nil {
			t.Fatal(err)
		}
	}
	_, err := io.WriteString(w, text)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestEncodedAnswers: an upstream that compresses unasked is read as any other, its refusals too. What does not fit its encoding fails,
// and one that is not known passes as it is.
func TestEncodedAnswers(t *testing.T) {
	t.Parallel()
	text := strings.Repeat(`{"error":"plain"}`, 1000)
	for _, encoding := range []string{"gzip", "br", "zstd"} {
		for _, status := range []int{200, 400} {
			body := encoded(t, encoding, text)
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", encoding)
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				_, _ = w.Write(body)
			})
			if status != 200 {
				if fault := sendFault(t, client(t, nil), post(t.Context(), t, server.URL)); string(fault.Upstream.Body) != text {
					t.Errorf("%s: refused with %.40q", encoding, fault.Upstream.Body)
				}
				continue
			}
			resp, err := upstream.Send(client(t, nil), post(t.Context(), t, server.URL))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			if err = errors.Join(err, resp.Body.Close()); err != nil || string(got) != text || resp.Header.Get("Content-Encoding") != "" || resp.Header.Get("Content-Length") != "" {
				t.Errorf("%s: %v, %.40q, %v", encoding, err, got, resp.Header)
			}
		}
		body, ok := upstream.Decoded(encoding, io.NopCloser(strings.NewReader("\xffnot encoded")))
		if _, err := io.ReadAll(body); !ok || !errors.Is(err, upstream.ErrEncoding) {
			t.Errorf("%s of something else: %v", encoding, err)
		}
		broken := errors.New("broken")
		body, _ = upstream.Decoded(encoding, io.NopCloser(io.MultiReader(bytes.NewReader(encoded(t, encoding, text)[:20]), failing{broken})))
		if _, err := io.ReadAll(body); !errors.Is(err, broken) || errors.Is(err, upstream.ErrEncoding) {
			t.Errorf("%s that breaks off: %v", encoding, err)
		}
	}
	if body, ok := upstream.Decoded("deflate", http.NoBody); ok || body != http.NoBody {
		t.Error("an unknown encoding was decoded")
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
