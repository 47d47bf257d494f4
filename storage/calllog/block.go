package calllog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"modelrelay/storage"
)

// The keys:
//
//	calls                stream  blocks of lines, the newest last: "n" number of calls, "t" number of all calls up to the block's
//	                             end, "z" the lines, compressed by zstd
//	calls-seq:<process>  string  the last batch of one process, see outbox
//
// A usual record has 520 bytes as a line. In Redis, it takes 100 bytes in a full block, and 360 alone in a block. Its write takes the
// process about 4 µs of CPU, 3 of them for compression; a scan of 100,000 calls takes 0.15 s (BenchmarkWrite and BenchmarkScan).
const streamKey = storage.Prefix + "calls"

const (
	// blockRecords and blockBytes bound a block, which a reader decompresses as a whole.
	blockRecords = 250
	blockBytes   = 256 << 10
	// blockMost bounds the decompressed size of a block.
	blockMost = 4 * blockBytes
	// waitingMost is the number of records that wait while Redis is unavailable; then the oldest blocks are dropped.
	waitingMost = 10_000
)

// block holds lines that are not in Redis yet, each with its line feed.
type block struct {
	lines   []byte
	records int
}

func (b *block) full() bool { return b.records >= blockRecords || len(b.lines) >= blockBytes }

// addScript adds a block, and drops the oldest blocks beyond the number of calls to store. Its answer is the block's id.
//
//	KEYS  the outbox's, the stream
//	ARGV  the outbox's, least number of calls to store, number of calls in the block, the block
const addScript = `
local function total(entry) -- of the calls up to the end of an entry
	return entry and tonumber(entry[2][4]) or 0
end
local all = total(redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]) + tonumber(ARGV[3])
local id = redis.call('XADD', KEYS[2], '*', 'n', ARGV[3], 't', string.format('%.0f', all), 'z', ARGV[4])
local oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
while all - total(oldest) >= tonumber(ARGV[2]) do
	redis.call('XDEL', KEYS[2], oldest[1])
	oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
end
return applied(id)
`

// encode returns the keys and arguments of addScript.
func (l *Log) encode(b *block) (keys []string, args []any) {
	return []string{streamKey}, []any{l.recent, b.records, l.zstd.EncodeAll(b.lines, nil)}
}

// newEncoder compresses in one goroutine and with little memory: blocks are small, and the relay needs the machine.
func newEncoder() *zstd.Encoder {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(blockBytes), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constant
	}
	return encoder
}

func newDecoder() *zstd.Decoder {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(scansMost), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(blockMost))
	if err != nil {
		panic(err) // the options are constant
	}
	return decoder
}

// place is the place of a call in Redis: its block's id, which is two numbers, and the offset of its line in the block. The first number is
// the time at which the block was written, in ms.
type place [3]uint64

func (p place) String() string { return p.block() + "-" + strconv.FormatUint(p[2], 10) }

// block returns the block's id.
func (p place) block() string { return fmt.Sprintf("%d-%d", p[0], p[1]) }

func (p place) written() time.Time { return time.UnixMilli(int64(p[0])).UTC() }

func (p place) compare(other place) int { return slices.Compare(p[:], other[:]) }

// PlaceAt returns the place of the calls that were written at a time.
func PlaceAt(written time.Time) string { return place{uint64(max(0, written.UnixMilli()))}.String() }

// parsePlace parses a place, or a block's id as the place of its first call.
func parsePlace(text string) (p place, ok bool) {
	parts := strings.Split(text, "-")
	if len(parts) != 2 && len(parts) != 3 {
		return place{}, false
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 63)
		if err != nil {
			return place{}, false
		}
		p[i] = n
	}
	return p, true
}
