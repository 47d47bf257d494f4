package edge

import (
	"net/http"
	"time"

	"modelrelay/storage/calllog"
)

// Called receives the record of an ended or refused call, conversation or create of a task. It must not block. It must not keep the
// record or its parts, because the next call reuses it.
type Called func(record *calllog.Record)

func (x report) called() {
	e := x.edge
	if e.options.Called == nil || !x.Recorded {
		return
	}
	r, _ := e.records.Get().(*calllog.Record)
	if r == nil {
		r = new(calllog.Record)
	}
	x.record(r)
	e.options.Called(r)
	*r = calllog.Record{Tries: r.Tries[:0]} // the pool must not keep parts of the request
	clear(r.Tries[:cap(r.Tries)])
	e.records.Put(r)
}

func (x report) record(r *calllog.Record) {
	o := &x.Outcome
	r.At = x.Start
	r.Names = calllog.Names{ID: x.ID, Client: x.clientID, Trace: traceID(x.span), Task: o.Task}
	if x.Caller != nil {
		r.Token, r.TokenName = x.Caller.ID, x.Caller.Name
	}
	if agents := x.http.Header["User-Agent"]; len(agents) > 0 {
		r.Agent = agents[0]
	}
	r.Requested = calllog.Requested{Operation: x.operationID, Format: string(x.Format.Name), Model: o.Model, Stream: o.Stream}
	r.Outcome = calllog.Outcome{Channel: o.Channel, Status: x.shownStatus(), Bytes: x.bytes}
	if x.Fault != nil {
		r.Fault, r.Words, r.Code = string(x.Fault.Kind), x.Fault.Message, x.Fault.Code
	}
	r.Before, r.Took = x.since(o.Sent), time.Since(x.Start)
	if !o.Answered.IsZero() {
		r.First = x.since(x.first)
	}
	r.Used = calllog.Used{
		Input: o.Usage.Input, Cached: o.Usage.Cached, Output: o.Usage.Output, Images: o.Usage.Images, Audio: o.Usage.Audio,
		Cost: int64(o.Cost), Priced: o.Priced, Estimated: o.Estimated,
	}
	for _, t := range o.Trail.Tries() {
		r.Tries = append(r.Tries, calllog.Try{
			Channel: t.Channel, Key: t.Key, Fault: string(t.Fault), Vendor: t.RequestID, Took: t.Took,
		})
	}
	if r.Status == 0 && r.Fault == "" { // a conversation: its answer is the switch to WebSocket
		r.Status = http.StatusSwitchingProtocols
	}
}
