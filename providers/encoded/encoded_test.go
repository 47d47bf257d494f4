package encoded_test

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

	"modelrelay/providers/encoded"
)

// pack is a text in an encoding.
func pack(t *testing.T, encoding, text string) []byte {
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

// TestDecode: Decode decodes each encoding. Malformed data has another error than a body that breaks off. Decode does not accept an unknown
// encoding.
func TestDecode(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("plain text ", 1000)
	for _, encoding := range []string{"gzip", "br", "zstd"} {
		body, ok := encoded.Decode(encoding, io.NopCloser(bytes.NewReader(pack(t, encoding, text))))
		got, err := io.ReadAll(body)
		if err = errors.Join(err, body.Close()); !ok || err != nil || string(got) != text {
			t.Errorf("%s: %v, %.40q", encoding, err, got)
		}
		body, _ = encoded.Decode(encoding, io.NopCloser(strings.NewReader("\xffnot encoded")))
		if _, err := io.ReadAll(body); !errors.Is(err, encoded.ErrBroken) {
			t.Errorf("%s of something else: %v", encoding, err)
		}
		broken := errors.New("broken")
		body, _ = encoded.Decode(encoding, io.NopCloser(io.MultiReader(bytes.NewReader(pack(t, encoding, text)[:20]), failing{broken})))
		if _, err := io.ReadAll(body); !errors.Is(err, broken) || errors.Is(err, encoded.ErrBroken) {
			t.Errorf("%s that breaks off: %v", encoding, err)
		}
	}
	if body, ok := encoded.Decode("deflate", http.NoBody); ok || body != http.NoBody {
		t.Error("an unknown encoding was decoded")
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
