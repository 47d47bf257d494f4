package calllog

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// lateMost is how many late blocks, and how many files of the history, one search by an id reads: the latest that may have it.
const lateMost = 50

// Named returns the calls of the filter that came at about a time and have filter.ID among their ids, at most so many, the newest first;
// only the call of that request where there is one. It reads what was written within some minutes after that time and the late blocks.
// Where Redis no longer has that time, it reads the history's files of it. caller is Range.For. The error is storage.ErrUnavailable.
func (r *Reader) Named(ctx context.Context, filter Filter, came time.Time, most int, caller string) ([]Call, error) {
	filter.Since, filter.Until = came.Add(-clocks), came.Add(clocks)
	done, err := r.begin(ctx, caller, r.turns)
	if err != nil {
		return nil, err
	}
	n := &naming{reader: r, id: filter.ID, most: most, came: came, matcher: filter.matcher()}
	missing, err := n.redis(ctx)
	done()
	if err == nil && !n.enough() && missing && r.files != nil {
		if done, err = r.begin(ctx, caller, r.pastTurns); err != nil {
			return nil, err
		}
		defer done()
		err = n.history(ctx)
	}
	slices.Reverse(n.found)
	return n.found, err
}

// naming is one search by an id.
type naming struct {
	reader  *Reader
	matcher matcher
	id      string
	came    time.Time
	most    int
	found   []Call
	own     bool // found is the request's own call
	lines   []byte
}

func (n *naming) enough() bool { return n.own || len(n.found) >= n.most }

func (n *naming) take(lines string, place func(offset int) string) {
	for offset := 0; offset < len(lines) && !n.own; {
		line := lines[offset:]
		if end := strings.IndexByte(line, '\n'); end >= 0 {
			line = line[:end+1]
		}
		at := place(offset)
		offset += len(line)
		if !n.matcher.fits(line) {
			continue
		}
		record, err := parse(line)
		switch {
		case err != nil: // another program's
		case record.ID == n.id:
			n.found, n.own = []Call{{record, at}}, true
		case len(n.found) < n.most:
			n.found = append(n.found, Call{record, at})
		}
	}
}

// redis reads Redis' calls. missing: Redis does not have all calls of the time.
func (n *naming) redis(ctx context.Context) (missing bool, err error) {
	client := n.reader.client
	oldest, err := client.XRangeN(ctx, streamKey, "-", "+", 1).Result()
	if err != nil {
		return false, storage.RedisError("read calls", err)
	}
	missing = true
	if len(oldest) > 0 {
		at, _ := parsePlace(oldest[0].ID)
		missing = at.written().After(n.came.Add(-clocks))
	}
	from, to := n.came.Add(-clocks).UnixMilli(), n.came.Add(lateAfter+clocks).UnixMilli()
	start := strconv.FormatInt(max(0, from), 10)
	for size := firstChunk; !n.enough(); size = nextChunk {
		blocks, err := client.XRangeN(ctx, streamKey, start, strconv.FormatInt(max(0, to), 10), int64(size)).Result()
		if err != nil {
			return missing, storage.RedisError("read calls", err)
		}
		n.blocks(blocks)
		if len(blocks) < size {
			break
		}
		start = "(" + blocks[len(blocks)-1].ID
	}
	if n.enough() {
		return missing, nil
	}
	return missing, n.late(ctx, to)
}

// late reads the late blocks that were written after a time and may have calls of the search's time.
func (n *naming) late(ctx context.Context, after int64) error {
	client := n.reader.client
	ids, err := client.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: lateKey, ByScore: true, Rev: true, Start: "-inf", Stop: n.came.Add(clocks).UnixMilli(), Count: lateMost,
	}).Result()
	if err != nil {
		return storage.RedisError("read calls", err)
	}
	for _, id := range ids {
		if at, ok := parsePlace(id); !ok || int64(at[0]) <= after || n.enough() {
			continue
		}
		blocks, err := client.XRangeN(ctx, streamKey, id, id, 1).Result()
		if err != nil {
			return storage.RedisError("read calls", err)
		}
		n.blocks(blocks)
	}
	return nil
}

func (n *naming) blocks(blocks []redis.XMessage) {
	for _, b := range blocks {
		at, _ := parsePlace(b.ID)
		packed, _ := b.Values["z"].(string)
		n.lines, _ = n.reader.zstd.DecodeAll([]byte(packed), n.lines[:0]) // as far as it is a block of lines
		n.take(string(n.lines), func(offset int) string { return place{at[0], at[1], uint64(offset)}.String() })
	}
}

// history reads the files of the time, those that were closed first before the others.
func (n *naming) history(ctx context.Context) error {
	files := n.reader.files
	read := 0
	last := n.came.Add(longestCall)
	if now := time.Now().Add(clocks); now.Before(last) {
		last = now
	}
	for hour := n.came.Add(-clocks - fileFor).UTC().Truncate(time.Hour); !hour.After(last); hour = hour.Add(time.Hour) {
		folder := hour.Format(hourLayout)
		var fit []historyFile
		for name, err := range files.List(ctx, HistoryFolder+folder+"/") {
			if err != nil {
				return err
			}
			file, err := parseHistory(name)
			if err == nil && !file.from.After(n.came.Add(clocks)) && !file.to.Before(n.came.Add(-clocks)) {
				fit = append(fit, file)
			}
		}
		slices.SortFunc(fit, func(a, b historyFile) int { return cmp.Or(a.to.Compare(b.to), cmp.Compare(a.name, b.name)) })
		for _, file := range fit {
			if read++; read > lateMost {
				return nil
			}
			lines, _, err := file.read(ctx, files)
			if err != nil {
				return err
			}
			base := strings.TrimSuffix(path.Base(file.name), historyEnding)
			n.take(lines, func(offset int) string { return pastPlace{hour: folder, file: base, offset: offset}.String() })
			if n.enough() {
				return nil
			}
		}
	}
	return nil
}
