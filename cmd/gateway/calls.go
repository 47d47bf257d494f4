package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/api/edge"
	"modelrelay/api/logs"
	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/cmd/gateway/internal/metrics"
	"modelrelay/providers"
	"modelrelay/storage/archive"
	"modelrelay/storage/calllog"
	"modelrelay/storage/traffic"
)

// knownModels are the models that the configuration names. It is safe for concurrent use.
type knownModels struct {
	names atomic.Pointer[map[string]bool]
}

func (k *knownModels) load(cfg config.Config) {
	names := make(map[string]bool)
	for _, channel := range cfg.Routes() {
		for model := range channel.Models {
			if !providers.IsPattern(model) {
				names[model] = true
			}
		}
	}
	for model := range cfg.Named() {
		names[model] = true
	}
	k.names.Store(&names)
}

func (k *knownModels) has(model string) bool {
	names := k.names.Load()
	return names != nil && (*names)[model]
}

// callRecords is what is written down of calls: the log of them, its history in the archive, and their sums.
type callRecords struct {
	config.Calls

	redis   redis.UniversalClient
	archive *archive.Store
	known   func(model string) bool
	log     *slog.Logger
	flush   func(part string, end func(context.Context) error) func() error
}

func (p *parts) calls() callRecords {
	return callRecords{p.cfg.Calls, p.redis, p.archive, p.models.has, p.log, p.flush}
}

// write opens the log of calls and their sums for writing, and puts the log into stores. Main's Close writes what waits.
func (c callRecords) write(m *Main, stores *metrics.Stores) edge.Called {
	sums := traffic.New(c.redis, &traffic.Options{Known: c.known, Log: c.log})
	m.onClose(c.flush("traffic", sums.Close))
	count := func(r *calllog.Record) {
		if r.Token == "" { // unauthenticated clients that try keys are no traffic
			return
		}
		channel := r.Channel
		if n := len(r.Tries); channel == "" && n > 0 { // the one that failed last
			channel = r.Tries[n-1].Channel
		}
		sums.Add(traffic.Entry{
			At: time.Now(), Model: r.Model, Channel: channel, Failed: failed(r), Tokens: r.Input + r.Output, Cost: r.Cost, First: r.First,
		})
	}
	if c.Recent == 0 {
		return count
	}
	options := calllog.Options{Recent: c.Recent, Log: c.log}
	if files := c.files(); files != nil {
		history := calllog.NewHistory(files, &calllog.HistoryOptions{Log: c.log})
		m.onClose(c.flush("history of calls", history.Close)) // after the log, which still reports it
		options.History, stores.History = history.Take, history
	}
	log := calllog.New(c.redis, &options)
	stores.Calls = log
	m.onClose(c.flush("calls", log.Close))
	return func(r *calllog.Record) {
		count(r)
		log.Add(r)
	}
}

// failed reports the calls that speak against the deployment or its upstreams: not those that were refused for what the client
// itself asked, nor those that it left.
func failed(r *calllog.Record) bool {
	return r.Failed() && r.Fault != string(providers.Canceled) && (len(r.Tries) > 0 || r.Status >= http.StatusInternalServerError)
}

func (c callRecords) logs() logs.Options {
	o := logs.Options{Traffic: traffic.NewReader(c.redis)}
	if c.Recent > 0 {
		o.Calls = c.reader()
	}
	return o
}

func (c callRecords) reader() *calllog.Reader { return calllog.NewReader(c.redis, c.files()) }

// files keep the history; nil: it is off.
func (c callRecords) files() calllog.HistoryFiles {
	if c.Retention == 0 {
		return nil
	}
	return callFiles{objects{c.archive}}
}

// callFiles are the archive as the log of calls knows it.
type callFiles struct{ objects }

// Put implements calllog.HistoryFiles.
func (f callFiles) Put(ctx context.Context, name string, content []byte) error {
	_, err := f.Store.Put(ctx, name, bytes.NewReader(content), int64(len(content)), archive.PutOptions{ContentType: "application/zstd"})
	return err
}

// Open implements calllog.HistoryFiles.
func (f callFiles) Open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	object, err := f.Store.Open(ctx, name)
	if err != nil {
		return nil, 0, err
	}
	return object, object.Object().Size, nil
}
