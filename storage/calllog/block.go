package calllog

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"modelrelay/storage"
)

// The keys:
//
//	calls                stream  a block of lines, the newest last: "n" how many, "t" how many were written up to its end,
//	                             "z" the lines, compressed by zstd
//	calls-late           zset    ids of blocks by when the earliest of their calls came, in ms: those written more than lateAfter later
//	calls-seq:<process>  string  the last batch of one process, see outbox
//
// A usual record has 520 bytes as a line, and takes Redis 100 bytes in a full block and some 360 in a block of its own. It costs the
// process some 4 µs from the relay until Redis has it, 3 of them to compress, and 100,000 calls are scanned in 0.15 s of CPU
// (BenchmarkWrite and BenchmarkScan).
const (
	streamKey = storage.Prefix + "calls"
	lateKey   = storage.Prefix + "calls-late"
)

// lateAfter is how long after it came a call is written at most, but for those of the late blocks. Most calls are shorter.
const lateAfter = 5 * time.Minute

const (
	// blockRecords and blockBytes end a block: a reader decompresses it whole.
	blockRecords = 250
	blockBytes   = 256 << 10
	// blockMost bounds what is decompressed of a block.
	blockMost = 4 * blockBytes
	// waitingMost is how many full blocks of records wait for a Redis that is away; then the oldest go.
	waitingMost = 10_000
	// freeMost is how many blocks are kept for later.
	freeMost = 4
)

// block is lines on their way, each with its line feed.
type block struct {
	lines   []byte
	records int
}

func (b *block) full() bool { return b.records >= blockRecords || len(b.lines) >= blockBytes }

// addScript adds a block and drops the oldest blocks that are not needed for the number of calls to keep. Its answer is the block's
// id.
//
//	KEYS  the outbox's, the stream, the late blocks
//	ARGV  the outbox's, how many calls are kept at least, how many the block has, the block, when its earliest call came, in ms, and
//	      after how many ms it is late
const addScript = `
local function total(entry) -- of the calls up to the end of an entry
	return entry and tonumber(entry[2][4]) or 0
end
local all = total(redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]) + tonumber(ARGV[3])
local id = redis.call('XADD', KEYS[2], '*', 'n', ARGV[3], 't', string.format('%.0f', all), 'z', ARGV[4])
if tonumber(id:match('^%d+')) - tonumber(ARGV[5]) > tonumber(ARGV[6]) then redis.call('ZADD', KEYS[3], ARGV[5], id) end
local oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
while all - total(oldest) >= tonumber(ARGV[2]) do
	redis.call('XDEL', KEYS[2], oldest[1])
	redis.call('ZREM', KEYS[3], oldest[1])
	oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
end
return applied(id)
`

// encode returns what addScript takes.
func (l *Log) encode(b *block) (keys []string, args []any) {
	l.packed = l.zstd.EncodeAll(b.lines, l.packed[:0])
	return []string{streamKey, lateKey}, []any{l.recent, b.records, l.packed, earliest(b.lines), lateAfter.Milliseconds()}
}

// earliest is when the earliest call of lines came, in ms.
func earliest(lines []byte) int64 {
	first := int64(math.MaxInt64)
	for line := range bytes.Lines(lines) {
		first = min(first, cameAt(string(line[:min(len(line), len(`{"at":`)+20)])))
	}
	return first
}

// newEncoder compresses in one goroutine and with little memory: what is compressed is small, and the machine is the relay's.
func newEncoder() *zstd.Encoder {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(blockBytes), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // options of this file alone
	}
	return encoder
}

func newDecoder() *zstd.Decoder {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(scansMost), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(blockMost))
	if err != nil {
		panic(err) // options of this file alone
	}
	return decoder
}

// place is where a call is in Redis: its block's id, which are two numbers, and where its line begins in the block. The first number
// is when the block was written, in ms.
type place [3]uint64

func (p place) String() string { return p.block() + "-" + strconv.FormatUint(p[2], 10) }

// block is the block's id.
func (p place) block() string { return fmt.Sprintf("%d-%d", p[0], p[1]) }

func (p place) written() time.Time { return time.UnixMilli(int64(p[0])).UTC() }

func (p place) compare(other place) int { return slices.Compare(p[:], other[:]) }

// parsePlace reads a place, or a block's id as the place of its first call.
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
