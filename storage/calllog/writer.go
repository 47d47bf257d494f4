package calllog

import (
	"context"
	"crypto/rand"
	"strconv"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// The keys:
//
//	calls                stream  field "p": one call, packed, the newest last
//	calls-seq:<process>  string  the number and place of one process's last batch, so that none is written twice
const streamKey = storage.Prefix + "calls"

func sequenceKey(process string) string { return storage.Prefix + "calls-seq:" + process }

// addScript adds a batch unless its number was added before. Its answer is the last place of the batch, whose calls all have one
// time: that is how the history knows what Redis still has.
//
//	KEYS  the stream, the sequence
//	ARGV  number, how many calls are kept, then the packed records
const addScript = `
local number, place = string.match(redis.call('GET', KEYS[2]) or '0', '^(%d+) ?(.*)$')
if tonumber(number or 0) >= tonumber(ARGV[1]) then return place end
local id = '*'
for i = 3, #ARGV do
  place = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], id, 'p', ARGV[i])
  local time, of = string.match(place, '^(%d+)-(%d+)$')
  id = time .. '-' .. string.format('%d', of + 1)
end
redis.call('SET', KEYS[2], ARGV[1] .. ' ' .. place, 'EX', 86400)
return place
`

// writer writes blocks, one at a time.
type writer struct {
	client  redis.UniversalClient
	script  *redis.Script
	recent  int
	process string
	number  int64
	unsure  *block // whose answer did not come; it is sent again
}

func newWriter(client redis.UniversalClient, recent int) writer {
	return writer{client: client, script: redis.NewScript(addScript), recent: recent, process: rand.Text()[:12]}
}

// write gives a block to Redis. written is when it took it, in ms.
func (w *writer) write(ctx context.Context, b *block) (written int64, err error) {
	args := make([]any, 0, len(b.ends)+2)
	args = append(args, strconv.FormatInt(w.number, 10), strconv.Itoa(w.recent))
	from := 0
	for _, at := range b.ends {
		args = append(args, b.packed[from:at])
		from = at
	}
	place, err := w.script.Run(ctx, w.client, []string{streamKey, sequenceKey(w.process)}, args...).Text()
	if err != nil {
		return 0, storage.RedisError("write calls", err)
	}
	if at, ok := writtenAt(place); ok {
		written = at.UnixMilli()
	}
	return written, nil
}
