// Package bench measures what the gateway costs: a fixed load goes by turns through the gateway and through a floor, the
// smallest reverse proxy one can write with Go's standard library, all on loopback, and each process's CPU time and
// memory are read from the kernel. It talks to the gateway as a client would and imports nothing of it.
package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
)

// Options says what is measured. Every number must be within its bounds; a load of size 0 is left out where that is said.
type Options struct {
	// Program is this program, which runs Redis, the upstream and the whole stack as its sub-commands.
	Program string
	// Gateway and Floor compile the two programs into a file.
	Gateway, Floor func(ctx context.Context, file string) error
	// Data is an empty folder for configuration, logs and state. It stays the caller's.
	Data string
	// Pictures is a folder for the pictures of what grows; "": none are made.
	Pictures string
	// Log gets a line for every load that begins.
	Log *slog.Logger

	Rounds       int // of each load; floor and gateway take turns in each
	Connections  int // of the chat load
	Requests     int // of the chat load, in each round; 0: no chat load
	Streams      int // at once; 0: none
	Leavers      int // clients that leave their streams, in each round; 0: none
	SlowReaders  int // clients that stand still, in each round; 0 or 1
	Bodies       int // large bodies, in each round; 0: none
	Tasks        int // video tasks, made one after the other; 0: none
	Lives        int // video tasks from their create to their webhook, with what each process spends on one; 0: none
	StreamGrowth int // the most event streams at once, from 1 on; 0: none
	TaskGrowth   int // the most video tasks in flight, from 10 in steps of ten times; 0: none
	Line         int // video tasks of one tenant that fill a channel before another one's few come; 0: none
	Crowd        int // video tasks at once; 0: none
	Places       int // for jobs of the crowd at the upstream, the others stand in line; 0: no limit
	Large        int // size of one large video in MiB; 0: none
}

// bounds of Options, so that no slip of a flag keeps the machine busy for hours.
const (
	maxRounds      = 50
	maxConnections = 1024
	maxRequests    = 1_000_000
	maxStreams     = 2_000
	maxLeavers     = 1_000
	maxBodies      = 50
	maxTasks       = 1_000
	maxLives       = 5_000
	maxLine        = 10_000
	maxCrowd       = 20_000
	maxLarge       = 4 << 10
)

func (o Options) check() error {
	for _, b := range []struct {
		name           string
		is, from, upTo int
	}{
		{"rounds", o.Rounds, 1, maxRounds},
		{"connections", o.Connections, 1, maxConnections},
		{"requests", o.Requests, 0, maxRequests},
		{"streams", o.Streams, 0, maxStreams},
		{"leavers", o.Leavers, 0, maxLeavers},
		{"slow readers", o.SlowReaders, 0, 1},
		{"bodies", o.Bodies, 0, maxBodies},
		{"tasks", o.Tasks, 0, maxTasks},
		{"lives", o.Lives, 0, maxLives},
		{"stream growth", o.StreamGrowth, 0, maxStreams},
		{"task growth", o.TaskGrowth, 0, maxCrowd},
		{"line", o.Line, 0, maxLine},
		{"crowd", o.Crowd, 0, maxCrowd},
		{"places", o.Places, 0, maxCrowd},
		{"large", o.Large, 0, maxLarge},
	} {
		if b.is < b.from || b.is > b.upTo {
			return fmt.Errorf("%s: %d is not between %d and %d", b.name, b.is, b.from, b.upTo)
		}
	}
	return nil
}

// ErrBroken is wrapped by the errors of Run that say that an answer was wrong, cut or missing. A slow figure is no error.
var ErrBroken = errors.New("answers were wrong")

// Run does the loads one after the other and stops every process it started, also when ctx ends. It returns what was
// measured until then, whatever the error.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	report = newReport()
	if err := o.check(); err != nil {
		return report, err
	}
	s := &stage{options: o, client: &http.Client{Timeout: answerTimeout}}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.prepare(ctx); err != nil {
		return report, err
	}
	for _, load := range []struct {
		name string
		size int
		run  func(ctx context.Context, s *stage, report *Report) error
	}{
		{"chat", o.Requests, chat},
		{"other proxies", o.Requests, floors},
		{"translated chat", o.Requests, translatedChat},
		{"streams", o.Streams, streams},
		{"translated streams", o.Streams, translatedStreams},
		{"growing streams", o.StreamGrowth, streamGrowth},
		{"one core", o.Streams, oneCore},
		{"leavers", o.Leavers, leavers},
		{"slow reader", o.SlowReaders, slow},
		{"bodies", o.Bodies, bodies},
		{"tasks", o.Tasks, tasks},
		{"lives", o.Lives, lives},
		{"task growth", o.TaskGrowth, taskGrowth},
		{"line", o.Line, line},
		{"crowd", o.Crowd, crowd},
		{"large", o.Large, large},
	} {
		if load.size == 0 {
			continue
		}
		o.Log.Info("measuring", "load", load.name)
		// Each load meets fresh processes: what one leaves in memory is none of the next one's figures.
		err = errors.Join(err, load.run(ctx, s, report), s.clear())
		if err != nil && !errors.Is(err, ErrBroken) || ctx.Err() != nil {
			return report, fmt.Errorf("%s: %w", load.name, errors.Join(err, ctx.Err()))
		}
	}
	if o.Requests > 0 && s.collector.exports.Load() == 0 {
		err = errors.Join(err, fmt.Errorf("%w: no trace came, so the chats were measured without", ErrBroken))
	}
	return report, err
}
