package calllog

import (
	"strconv"

	"modelrelay/storage"
)

// The keys:
//
//	calls                stream  field "p": one call, packed, the newest last
//	calls-seq:<process>  string  the last batch of one process, see outbox
const streamKey = storage.Prefix + "calls"

// addScript adds a block. Its answer is the last place of the block, whose calls all have one time: by it the history knows what
// Redis still has.
//
//	KEYS  the outbox's, the stream
//	ARGV  the outbox's, how many calls are kept, then the packed records
const addScript = `
local place
local id = '*'
for i = 3, #ARGV do
  place = redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], id, 'p', ARGV[i])
  local time, of = string.match(place, '^(%d+)-(%d+)$')
  id = time .. '-' .. string.format('%d', of + 1)
end
return applied(place)
`

// encode returns what addScript takes.
func (l *Log) encode(b *block) (keys []string, args []any) {
	args = make([]any, 0, len(b.ends)+1)
	args = append(args, strconv.Itoa(l.recent))
	from := 0
	for _, at := range b.ends {
		args = append(args, b.packed[from:at])
		from = at
	}
	return []string{streamKey}, args
}
