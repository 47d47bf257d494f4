package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"modelrelay/api/edge"
	"modelrelay/api/logs"
	"modelrelay/cmd/gateway/internal/metrics"
	"modelrelay/providers"
	"modelrelay/storage/archive"
	"modelrelay/storage/calllog"
	"modelrelay/storage/traffic"
)

// writeCalls opens the log of calls, its history and their sums for writing, and adds the log to stores. Main's Close writes the remaining
// data.
func (p *parts) writeCalls(m *Main, stores *metrics.Stores) edge.Called {
	sums := traffic.New(p.redis, &traffic.Options{Known: p.metrics.Knows, Log: p.log})
	m.onClose(p.flush("traffic", sums.Close))
	count := func(r *calllog.Record) {
		if r.Token == "" { // requests of unauthenticated clients are not traffic
			return
		}
		channel := r.Channel
		if n := len(r.Tries); channel == "" && n > 0 { // the last failed channel
			channel = r.Tries[n-1].Channel
		}
		sums.Add(traffic.Entry{
			At: time.Now(), Model: r.Model, Channel: channel, Failed: failed(r), Tokens: r.Input + r.Output, Cost: r.Cost, First: r.First,
		})
	}
	if p.cfg.Calls.Recent == 0 {
		return count
	}
	options := calllog.Options{Recent: p.cfg.Calls.Recent, Log: p.log}
	if files := p.historyFiles(); files != nil {
		history := calllog.NewHistory(files, &calllog.HistoryOptions{Log: p.log})
		m.onClose(p.flush("history of calls", history.Close)) // after the log, which still reports to it
		options.History, stores.History = history.Take, history
	}
	log := calllog.New(p.redis, &options)
	stores.Calls = log
	m.onClose(p.flush("calls", log.Close))
	return func(r *calllog.Record) {
		count(r)
		log.Add(r)
	}
}

// failed reports whether a call failed because of the deployment or its upstreams. It is false if the client's request was the reason, or
// if the client left.
func failed(r *calllog.Record) bool {
	return r.Failed() && r.Fault != string(providers.Canceled) && (len(r.Tries) > 0 || r.Status >= http.StatusInternalServerError)
}

func (p *parts) callLogs() logs.Options {
	o := logs.Options{Traffic: traffic.NewReader(p.redis)}
	if p.cfg.Calls.Recent > 0 {
		o.Calls = calllog.NewReader(p.redis, p.historyFiles())
	}
	return o
}

// historyFiles store the history of calls; nil: it is disabled.
func (p *parts) historyFiles() calllog.HistoryFiles {
	if p.cfg.Calls.Retention == 0 {
		return nil
	}
	return callFiles{objects{p.archive}}
}

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
