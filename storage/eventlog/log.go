// Package eventlog stores the server-sent events of running calls. One worker writes the events of a call; any number of readers in any
// process read them, during and after the call, with the same numbers.
//
// While the call runs, the events are in a Redis stream and, some seconds later, in parts in the archive, so that the loss of Redis alone
// loses no event. After the end one object of the archive has them. Events above LargeEvent are only in the archive, so no reader holds one
// whole. The package does not interpret events.
package eventlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

const (
	// LargeEvent is the largest event that is held whole by its readers, in bytes.
	LargeEvent = 64 << 10
	// ArchiveWait is the longest wait of Append while the archive stores nothing.
	ArchiveWait = 10 * time.Minute
	// entryEvery and entrySize bound an entry of the stream: events of so long, or so many bytes; a larger event is one entry, up to
	// LargeEvent.
	entryEvery = 50 * time.Millisecond
	entrySize  = 16 << 10
	// partEvery and partSize bound a part: events of so long, or so many bytes.
	partEvery = 5 * time.Second
	partSize  = 1 << 20
	// streamMost bounds the events in the stream that are also in a part, in bytes. Readers find older ones in the parts.
	streamMost = 512 << 10
	// unsentMost bounds the events of a writer that are in a part and wait for Redis, in bytes.
	unsentMost = 64 << 10
	// pendingMost bounds the events of a writer that are not yet in a part, in bytes. Above it Append waits.
	pendingMost = 8 << 20
	// heldFree is what a writer may hold without memory of Share, in bytes, and roomPause how long Append waits before it looks for some
	// again.
	heldFree  = 64 << 10
	roomPause = 100 * time.Millisecond
	// firstPartWithin bounds the wait of the first events for their part.
	firstPartWithin = time.Second
	// windowMost bounds the newest events that the readers of a log share in memory, in bytes.
	windowMost = 64 << 10
	// readMost is the number of entries in one read of the stream.
	readMost = 8
	// wholeMost bounds a final object that is built in memory, in bytes; a larger one is streamed.
	wholeMost = 256 << 10
	// indexEvery is the distance of the events in an index, in bytes.
	indexEvery = 1 << 20
	// endTTL is how long Redis has the end of a log. Later readers find it in the archive.
	endTTL = 10 * time.Minute
	// gapPause is how long a reader waits for events that exist, but are neither in Redis nor in the archive yet.
	gapPause = 500 * time.Millisecond
	// pollMin and pollMost are the shortest and the longest pause after which a tail that hears nothing checks Redis and the archive.
	pollMin, pollMost = 2 * time.Second, 15 * time.Second

	contentType = "text/event-stream"
)

var (
	// ErrEnded reports that the log has ended.
	ErrEnded = errors.New("the event log has ended")
	// ErrReplaced reports that a later writer continues the log.
	ErrReplaced = errors.New("another writer continues the event log")
	// ErrEvent reports bytes that are not complete events.
	ErrEvent = errors.New("not a complete event")
)

// AheadError reports a reader that has seen events which are not stored, or may have: Redis and the worker were lost together.
type AheadError struct {
	// Events is the number of stored events.
	Events int64
}

// Error implements error.
func (*AheadError) Error() string { return "the reader is ahead of the stored events" }

// Objects is the archive. Its errors are those of storage.
type Objects interface {
	// Put stores the content of r and replaces an object with the same key. size is exact, or -1 if unknown.
	Put(ctx context.Context, key string, r io.Reader, size int64, contentType string) (stored int64, sha256 string, err error)
	// Open returns the content of an object, or storage.ErrNotFound. The caller closes it.
	Open(ctx context.Context, key string) (io.ReadSeekCloser, error)
	// List yields the keys that begin with the prefix. An error is the last thing it yields.
	List(ctx context.Context, prefix string) iter.Seq2[string, error]
	// DeletePrefix removes every object whose key begins with the prefix.
	DeletePrefix(ctx context.Context, prefix string) error
}

// Object describes the final object of an ended log: the events, one after the other, as every reader receives them.
type Object struct {
	Key    string
	Size   int64
	SHA256 string // hex
	Events int64
}

// Log stores the events of calls. It is safe for concurrent use.
//
// id names a call in Redis; prefix is its folder in the archive and ends with a slash.
type Log struct {
	client  redis.UniversalClient
	objects Objects
	ttl     time.Duration
	out     storage.Outage
	script  *redis.Script
	tails   *tails
}

// New returns a log over the client and the archive, which the caller closes. Redis has the events for the ttl after the last write.
func New(client redis.UniversalClient, objects Objects, ttl time.Duration, log *slog.Logger) *Log {
	l := &Log{
		client: client, objects: objects, ttl: ttl, script: redis.NewScript(addScript),
		out: storage.Outage{Log: log, What: "the events of running calls"},
	}
	l.tails = &tails{log: l, byChannel: make(map[string]*tail)}
	return l
}

// streamKey returns the key of a stream: the newest events of a call. writerKey returns that of a string: its last writer. channel returns
// the channel with the entries of the stream.
func streamKey(id string) string { return storage.Prefix + "events:" + id }
func writerKey(id string) string { return streamKey(id) + ":writer" }
func channel(id string) string   { return streamKey(id) }

// The id of an entry is the number after its last event, then the number of its events; that of an end has endCount instead.
const endCount = math.MaxUint64

func entryID(end int64, count uint64) string {
	return strconv.FormatInt(end, 10) + "-" + strconv.FormatUint(count, 10)
}

// addScript adds an entry to the stream and publishes it, unless a later writer has the log. An entry that the stream has, because the
// answer was lost, is not added again.
// KEYS: the stream, its last writer, its channel. ARGV: the writer; the number at which it began, -1 for a new writer that does not know
// it; milliseconds to live; then, with an entry, its id, the id before which entries are removed, and its message. Returns the writer,
// which for a new one is above the last; 0 if a later writer has the log.
const addScript = `
local last = tonumber(redis.call('GET', KEYS[2]) or '0')
local writer, begin = tonumber(ARGV[1]), tonumber(ARGV[2])
if begin < 0 and last >= writer then writer = last + 1 end
if last > writer then return 0 end
if last < writer and begin >= 0 then
	local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
	if newest and tonumber(string.match(newest[1], '^%d+')) > begin then redis.call('DEL', KEYS[1]) end
end
redis.call('SET', KEYS[2], string.format('%.0f', writer), 'PX', ARGV[3])
if #ARGV == 3 then return writer end
local added = redis.pcall('XADD', KEYS[1], 'MINID', ARGV[5], ARGV[4], 'm', ARGV[6])
if type(added) == 'table' and added.err then
	if string.find(added.err, 'equal or smaller', 1, true) then return writer end
	return added
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PUBLISH', KEYS[3], ARGV[6])
return writer`

// run runs the script and returns the writer. storage.ErrUnavailable: Redis may have applied it.
func (l *Log) run(ctx context.Context, id string, args ...any) (writer int64, err error) {
	err = l.ask(ctx, "write events", func() (err error) {
		writer, err = l.script.Run(ctx, l.client, []string{streamKey(id), writerKey(id), channel(id)}, args...).Int64()
		return err
	})
	if err == nil && writer == 0 {
		err = ErrReplaced
	}
	return writer, err
}

// ask calls Redis, unless it did not answer a moment ago.
func (l *Log) ask(ctx context.Context, doing string, do func() error) error {
	if !l.out.Try(time.Now()) {
		return fmt.Errorf("%s: %w", doing, storage.ErrUnavailable)
	}
	err := do()
	return l.out.Note(ctx, time.Now(), storage.RedisError(doing, err))
}

// Stored returns the number of events that readers may have seen.
func (l *Log) Stored(ctx context.Context, id, prefix string) (int64, error) {
	s, err := l.find(ctx, id, prefix)
	return s.known, err
}

// Ended returns the key and the number of events of the final object of an ended log, or storage.ErrNotFound.
func (l *Log) Ended(ctx context.Context, prefix string) (Object, error) {
	_, e, err := l.list(ctx, prefix)
	if err == nil && e == nil {
		err = fmt.Errorf("find the end of %s: %w", prefix, storage.ErrNotFound)
	}
	if err != nil {
		return Object{}, err
	}
	return Object{Key: prefix + e.name(), Events: e.total}, nil
}

// Delete removes the log from Redis. The objects are in the folder of the call.
func (l *Log) Delete(ctx context.Context, id string) error {
	return storage.RedisError("delete events", l.client.Del(ctx, streamKey(id), writerKey(id)).Err())
}

// stored is what Redis and the archive have of a log.
type stored struct {
	parts []part
	known int64 // the number of events that readers may have seen
	end   *end  // nil: the log has not ended
}

// find reads what is stored. While Redis is unavailable it is what the archive has.
func (l *Log) find(ctx context.Context, id, prefix string) (s stored, err error) {
	var newest []redis.XMessage
	redisErr := l.ask(ctx, "read events", func() (err error) {
		newest, err = l.client.XRevRangeN(ctx, streamKey(id), "+", "-", 1).Result()
		return err
	})
	if redisErr != nil && !errors.Is(redisErr, storage.ErrUnavailable) {
		return s, redisErr
	}
	if s.parts, s.end, err = l.list(ctx, prefix); err != nil {
		return s, err
	}
	if n := len(s.parts); n > 0 {
		s.known = s.parts[n-1].end
	}
	for _, entry := range newest {
		c, e, err := parseEntry(entry)
		if err != nil {
			return s, err
		}
		s.known = max(s.known, c.end())
		if s.end == nil {
			s.end = e
		}
	}
	if s.end != nil {
		s.known = s.end.total
	}
	return s, nil
}

// list returns the parts of a log in the archive, one after the other, and its end, nil if it has not ended.
func (l *Log) list(ctx context.Context, prefix string) (parts []part, last *end, err error) {
	for key, err := range l.objects.List(ctx, prefix+strings.TrimSuffix(partsFolder, "/")) {
		if err != nil {
			return nil, nil, err
		}
		p, e := parseName(strings.TrimPrefix(key, prefix))
		if p != nil {
			parts = append(parts, *p)
		}
		if e != nil && (last == nil || e.writer > last.writer) {
			last = e
		}
	}
	return chain(parts), last, nil
}

func parseEntry(entry redis.XMessage) (chunk, *end, error) {
	message, _ := entry.Values["m"].(string)
	return parseMessage(message)
}
