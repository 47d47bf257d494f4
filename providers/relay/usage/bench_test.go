package usage_test

import (
	"strings"
	"testing"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/relay/usage"
)

// BenchmarkDocument counts an answer of 1 MiB that comes in pieces: by the scanner, and collected and read in memory.
func BenchmarkDocument(b *testing.B) {
	document := []byte(`{"choices":[{"message":{"content":"` + strings.Repeat("some text of an answer, ", 44_000) +
		`"}}],"usage":{"prompt_tokens":7,"completion_tokens":2}}`)
	const piece = 32 << 10
	shape := chatShape()
	pieces := func(use func([]byte)) {
		for rest := document; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
			use(rest[:min(piece, len(rest))])
		}
	}
	b.Run("scanner", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			scanner := usage.NewScanner(shape, false)
			pieces(scanner.Observe)
			scanner.End()
			if used, _ := scanner.Usage(); used.Output != 2 {
				b.Fatal(used)
			}
		}
	})
	b.Run("collected", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var all []byte
			pieces(func(p []byte) { all = append(all, p...) })
			if n, _ := rawjson.Value(all).At("usage", "completion_tokens").Count(); n != 2 {
				b.Fatal(n)
			}
		}
	})
}
