package calllog_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage/calllog"
	"modelrelay/storage/storagetest"
)

// usual is the record of a call that was answered, with ids and numbers as different and as long as they are.
func usual(i int) calllog.Record {
	r := full()
	random := rand.New(rand.NewPCG(1, uint64(i)))
	text := func(letters string, n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		return string(b)
	}
	ms := func(most int) time.Duration { return time.Duration(random.IntN(most)+1) * time.Millisecond }
	r.At = noon.Add(time.Duration(i) * 37 * time.Millisecond)
	r.Status, r.Fault, r.Words, r.Code, r.Task, r.Client, r.Tries = 200, "", "", "", "", "", r.Tries[1:]
	r.Model, r.Agent, r.ID, r.Trace = "gpt-4o", "OpenAI/Python 2.8.1", fmt.Sprintf("req_%026d", i), text("0123456789abcdef", 32)
	r.Token, r.TokenName = fmt.Sprint("tok_", i%20), fmt.Sprint("team ", i%20)
	r.Before, r.First, r.Took = time.Duration(random.IntN(900))*time.Microsecond, ms(1000), ms(9000)
	r.Input, r.Cached, r.Output, r.Images, r.Audio = int64(random.IntN(4000)), 0, int64(random.IntN(900)), 0, 0
	r.Cost, r.Bytes, r.Estimated = 2500*r.Input+10_000*r.Output, 7*r.Output+800, false
	r.Tries[0].Took, r.Tries[0].Vendor = r.Took, "chatcmpl-"+text("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", 29)
	return r
}

// TestSize: a call in a full block takes Redis about a fifth of its line.
func TestSize(t *testing.T) {
	t.Parallel()
	var records []calllog.Record
	for i := range 250 {
		records = append(records, usual(i))
	}
	lines, packed := calllog.Lines(records)
	_, one := calllog.Lines(records[:1])
	t.Logf("a line has %d bytes, in a full block %d, alone %d", len(lines)/len(records), len(packed)/len(records), len(one))
	if most := 130; len(packed) > most*len(records) {
		t.Errorf("a usual call takes %d bytes in a full block, want at most %d", len(packed)/len(records), most)
	}
}

// TestValues: odd values come back as they were.
func TestValues(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	records := map[string]calllog.Record{
		"numbers": {
			Used:    calllog.Used{Input: 1<<63 - 1, Cached: -1, Output: 64, Cost: -1 << 62},
			Outcome: calllog.Outcome{Status: 63, Bytes: 1 << 18},
		},
		"streamed only":                        {Requested: calllog.Requested{Stream: true}},
		"vendor's id of a try before the last": {Tries: []calllog.Try{{Channel: "a", Vendor: "v1"}, {Channel: "b", Fault: "timeout"}}},
		"the same channel twice": {
			Outcome: calllog.Outcome{Channel: "a"},
			Tries:   []calllog.Try{{Channel: "a", Fault: "timeout"}, {Channel: "a", Vendor: "v2"}},
		},
		"a try without a channel": {Outcome: calllog.Outcome{Channel: "a"}, Tries: []calllog.Try{{Took: time.Second}}},
		"skipped behind tries":    {Tries: []calllog.Try{{Channel: "b", Vendor: "v3"}}, Skipped: 7},
		"bytes that are no text":  {Requested: calllog.Requested{Model: "\x01\x02\x1f\u00f8\u00ff"}, Caller: calllog.Caller{Agent: "a\x7f"}},
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

// TestStrangers: members that a newer version added are left out, and what is no block is skipped.
func TestStrangers(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	want := full()
	lines, _ := calllog.Lines([]calllog.Record{want})
	newer := append(lines[:len(lines)-2:len(lines)-2], `,"later":{"x":[1]}}`+"\nno JSON\n{}"...)
	for _, values := range []map[string]any{{"n": 1, "t": 1, "z": calllog.Pack(newer)}, {"n": 1, "t": 2, "z": "no zstd"}, {"x": "y"}} {
		if err := client.XAdd(t.Context(), &redis.XAddArgs{Stream: "mr:calls", Values: values}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	ours := usual(2)
	ours.Token = "tok_a"
	write(t, client, ours)
	got := scan(t, calllog.NewReader(client, nil), calllog.Filter{Token: "tok_a"}, calllog.Range{}).Calls
	if len(got) != 2 || got[0].ID != ours.ID || !reflect.DeepEqual(got[1].Record, want) {
		t.Errorf("got %+v", got)
	}
}
