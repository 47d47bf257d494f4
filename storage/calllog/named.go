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

// lateMost bounds the late blocks, and the files of the history, that one search by an id reads.
const lateMost = 50

// Named returns the calls of the filter that arrived at about a time and have the id filter.ID: at most most, the newest first, or only the
// call of the request with that id. It reads blocks that were written within some minutes after that time, and the late blocks. If Redis no
// longer has that time, it reads the history. caller is Range.For. The error is storage.ErrUnavailable.
func (r *Reader) Named(ctx context.Context, filter Filter, arrived time.Time, most int, caller string) ([]Call, error) {
	filter.Since, filter.Until = arrived.Add(-clockSkew), arrived.Add(clockSkew)
	done, err := r.begin(ctx, caller, r.turns)
	if err != nil {
		return nil, err
	}
	n := &idSearch{reader: r, id: filter.ID, most: most, arrived: arrived, matcher: filter.matcher()}
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

// idSearch is one search by an id.
type idSearch struct {
	reader  *Reader
	matcher matcher
	id      string
	arrived time.Time
	most    int
	found   []Call
	own     bool // found is only the call of the request with the id
	lines   []byte
}

func (n *idSearch) enough() bool { return n.own || len(n.found) >= n.most }

func (n *idSearch) take(lines string, place func(offset int) string) {
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
		case err != nil: // of another program
		case record.ID == n.id:
			n.found, n.own = []Call{{record, at}}, true
		case len(n.found) < n.most:
			n.found = append(n.found, Call{record, at})
		}
	}
}

// redis searches Redis. missing: Redis no longer has all calls of the time.
func (n *idSearch) redis(ctx context.Context) (missing bool, err error) {
	client := n.reader.client
	oldest, err := client.XRangeN(ctx, streamKey, "-", "+", 1).Result()
	if err != nil {
		return false, storage.RedisError("read calls", err)
	}
	missing = true
	if len(oldest) > 0 {
		at, _ := parsePlace(oldest[0].ID)
		missing = at.written().After(n.arrived.Add(-clockSkew))
	}
	from, to := n.arrived.Add(-clockSkew).UnixMilli(), n.arrived.Add(lateAfter+clockSkew).UnixMilli()
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

// late searches the late blocks that were written after a time in ms.
func (n *idSearch) late(ctx context.Context, after int64) error {
	client := n.reader.client
	ids, err := client.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: lateKey, ByScore: true, Rev: true, Start: "-inf", Stop: n.arrived.Add(clockSkew).UnixMilli(), Count: lateMost,
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

func (n *idSearch) blocks(blocks []redis.XMessage) {
	for _, b := range blocks {
		at, _ := parsePlace(b.ID)
		packed, _ := b.Values["z"].(string)
		n.lines, _ = n.reader.zstd.DecodeAll([]byte(packed), n.lines[:0]) // of a broken block, the lines before the fault
		n.take(string(n.lines), func(offset int) string { return place{at[0], at[1], uint64(offset)}.String() })
	}
}

// history searches the files of the time, in the order in which they were closed.
func (n *idSearch) history(ctx context.Context) error {
	files := n.reader.files
	read := 0
	last := n.arrived.Add(longestCall)
	if now := time.Now().Add(clockSkew); now.Before(last) {
		last = now
	}
	for hour := n.arrived.Add(-clockSkew - fileFor).UTC().Truncate(time.Hour); !hour.After(last); hour = hour.Add(time.Hour) {
		folder := hour.Format(hourLayout)
		var fit []historyFile
		for name, err := range files.List(ctx, HistoryFolder+folder+"/") {
			if err != nil {
				return err
			}
			file, err := parseHistory(name)
			if err == nil && !file.from.After(n.arrived.Add(clockSkew)) && !file.to.Before(n.arrived.Add(-clockSkew)) {
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
