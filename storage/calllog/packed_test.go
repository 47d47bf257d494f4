package calllog_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage/calllog"
	"modelrelay/storage/storagetest"
)

// usual is the record of a call that was answered, with ids as long as they are.
func usual(i int) calllog.Record {
	r := full()
	r.Status, r.Fault, r.Words, r.Code, r.Task, r.Tries = 200, "", "", "", "", r.Tries[1:]
	r.Model, r.Agent, r.ID = "gpt-4o", "OpenAI/Python 2.8.1", fmt.Sprintf("req_%026d", i)
	return r
}

// TestPackedSize: a call takes Redis less than half of what its line would, and no more than its names and texts with a few bytes each.
func TestPackedSize(t *testing.T) {
	t.Parallel()
	r := usual(1)
	packed, line := calllog.Packed(&r)
	if most := 220; len(packed) > most {
		t.Errorf("a usual call is packed into %d bytes, want at most %d; its line has %d", len(packed), most, len(line))
	}
	if 2*len(packed) > len(line) {
		t.Errorf("%d bytes packed of a line of %d", len(packed), len(line))
	}
}

// TestPackedValues: what is packed in a way of its own comes back.
func TestPackedValues(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	records := map[string]calllog.Record{
		"numbers":                              {Used: calllog.Used{Input: 1<<63 - 1, Cached: -1, Output: 64, Cost: -1 << 62}, Outcome: calllog.Outcome{Status: 63, Bytes: 1 << 18}},
		"streamed only":                        {Asked: calllog.Asked{Stream: true}},
		"vendor's id of a try before the last": {Tries: []calllog.Try{{Channel: "a", Vendor: "v1"}, {Channel: "b", Fault: "timeout"}}},
		"the same channel twice":               {Outcome: calllog.Outcome{Channel: "a"}, Tries: []calllog.Try{{Channel: "a", Fault: "timeout"}, {Channel: "a", Vendor: "v2"}}},
		"a try without a channel":              {Outcome: calllog.Outcome{Channel: "a"}, Tries: []calllog.Try{{Took: time.Second}}},
		"skipped behind tries":                 {Tries: []calllog.Try{{Channel: "b", Vendor: "v3"}}, Skipped: 7},
		"bytes that begin members":             {Asked: calllog.Asked{Model: "\x01\x02\x1f\u00f8\u00ff"}, Caller: calllog.Caller{Agent: "a\x7f"}},
	}
	var all []calllog.Record
	for name, r := range records {
		r.At, r.ID = noon, name
		records[name] = r
		all = append(all, r)
	}
	write(t, client, all...)
	for _, call := range scan(t, calllog.NewReader(client, nil), calllog.Filter{}, calllog.Range{}).Calls {
		if want := records[call.ID]; !reflect.DeepEqual(call.Record, want) {
			t.Errorf("%s: got  %+v\nwant %+v", call.ID, call.Record, want)
		}
		delete(records, call.ID)
	}
	if len(records) > 0 {
		t.Errorf("not there: %v", records)
	}
	found := scan(t, calllog.NewReader(client, nil), calllog.Filter{ID: "v1"}, calllog.Range{}).Calls
	if len(found) != 1 || found[0].VendorID() != "v1" {
		t.Errorf("by the vendor's id: %+v", found)
	}
}

// TestLinesOfNewerVersions: members that a newer version added are left out, and what is no record is skipped.
func TestLinesOfNewerVersions(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	want := full()
	packed, _ := calllog.Packed(&want)
	for _, values := range []map[string]any{{"p": packed + "\x00added later"}, {"p": "\x01no time"}, {"x": "y"}} {
		if err := client.XAdd(t.Context(), &redis.XAddArgs{Stream: "mr:calls", Values: values}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	newer := usual(2)
	write(t, client, newer)
	got := scan(t, calllog.NewReader(client, nil), calllog.Filter{Token: "tok_a"}, calllog.Range{}).Calls
	if len(got) != 2 || got[0].ID != newer.ID || !reflect.DeepEqual(got[1].Record, want) {
		t.Errorf("got %+v", got)
	}
}

// FuzzUnpack: whatever stands in the stream, it is unpacked or refused.
func FuzzUnpack(f *testing.F) {
	r := full()
	packed, _ := calllog.Packed(&r)
	f.Add(packed)
	f.Add("A\xf8A\xf9\xfcv\xff")
	f.Fuzz(func(_ *testing.T, packed string) { calllog.Unpack(packed) })
}
