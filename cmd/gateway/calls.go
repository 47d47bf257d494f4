package main

import (
	"bytes"
	"context"
	"io"
	"iter"
	"net/http"
	"sync/atomic"
	"time"

	"modelrelay/api/edge"
	"modelrelay/api/logs"
	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/providers"
	"modelrelay/storage/archive"
	"modelrelay/storage/calllog"
	"modelrelay/storage/traffic"
)

// knownModels are the models that the configuration names. It is safe for concurrent use.
type knownModels struct {
	names atomic.Pointer[map[string]bool]
}

// load takes over the names of a configuration.
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

// callLog opens the log of calls and their sums for writing. Main's Close writes what waits.
func (p *parts) callLog(m *Main) (edge.Called, *calllog.Log) {
	sums := traffic.New(p.redis, &traffic.Options{Known: p.models.has, Log: p.log})
	m.onClose(p.flush("traffic", sums.Close))
	count := func(r *calllog.Record) {
		if r.Token == "" { // strangers who try keys are no traffic
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
	if p.cfg.Calls.Recent == 0 {
		return count, nil
	}
	options := calllog.Options{Recent: p.cfg.Calls.Recent, Log: p.log}
	if files := p.callFiles(); files != nil {
		history := calllog.NewHistory(files, &calllog.HistoryOptions{Log: p.log})
		m.onClose(p.flush("history of calls", history.Close)) // after the log, which still tells it
		options.History = history.Take
	}
	log := calllog.New(p.redis, &options)
	m.onClose(p.flush("calls", log.Close))
	return func(r *calllog.Record) {
		count(r)
		log.Add(r)
	}, log
}

// failed tells the calls that speak against the deployment or its upstreams: not those that were refused for what the client
// itself asked, nor those that it left.
func failed(r *calllog.Record) bool {
	return r.Failed() && r.Fault != string(providers.Canceled) && (len(r.Tries) > 0 || r.Status >= http.StatusInternalServerError)
}

// logs reads what processes have written of calls.
func (p *parts) logs() logs.Options {
	o := logs.Options{Traffic: traffic.NewReader(p.redis)}
	if p.cfg.Calls.Recent > 0 {
		o.Calls = calllog.NewReader(p.redis, p.callFiles())
	}
	return o
}

// callFiles keeps the history of calls; nil: it is off.
func (p *parts) callFiles() calllog.HistoryFiles {
	if p.cfg.Calls.Retention == 0 {
		return nil
	}
	return callFiles{p.archive}
}

// callFiles are the archive as the log of calls knows it.
type callFiles struct{ store *archive.Store }

// Put implements calllog.HistoryFiles.
func (f callFiles) Put(ctx context.Context, name string, content []byte) error {
	_, err := f.store.Put(ctx, name, bytes.NewReader(content), int64(len(content)), archive.PutOptions{ContentType: "application/zstd"})
	return err
}

// Open implements calllog.HistoryFiles.
func (f callFiles) Open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	object, err := f.store.Open(ctx, name)
	if err != nil {
		return nil, 0, err
	}
	return object, object.Object().Size, nil
}

// Folders implements calllog.HistoryFiles.
func (f callFiles) Folders(ctx context.Context, folder string) iter.Seq2[string, error] {
	return f.store.Folders(ctx, folder)
}

// List implements calllog.HistoryFiles.
func (f callFiles) List(ctx context.Context, folder string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for object, err := range f.store.List(ctx, folder) {
			if !yield(object.Key, err) {
				return
			}
		}
	}
}
