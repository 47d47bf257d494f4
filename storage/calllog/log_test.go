package calllog_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/calllog"
	"modelrelay/storage/storagetest"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// full is a record with every field set.
func full() calllog.Record {
	return calllog.Record{
		At:        noon,
		Names:     calllog.Names{ID: "req_1", Client: "mine", Trace: "4bf92f3577b34da6a3ce929d0e0e4736", Task: "video_1"},
		Caller:    calllog.Caller{Token: "tok_a", TokenName: "app", Agent: `Open"AI\Go 1`},
		Requested: calllog.Requested{Operation: "createChatCompletion", Format: "openai", Model: "gpt é\x01", Stream: true},
		Outcome: calllog.Outcome{
			Channel: "b", Status: 502, Fault: "upstream", Words: "The upstream failed.", Code: "bad", Bytes: 99,
		},
		Times: calllog.Times{Before: 250 * time.Microsecond, First: 300 * time.Millisecond, Took: 1900 * time.Millisecond},
		Used: calllog.Used{
			Input: 812, Cached: 700, Output: 96, Images: 2, Audio: 1500 * time.Millisecond, Cost: 200_000, Priced: true, Estimated: true,
		},
		Tries: []calllog.Try{
			{Channel: "a", Key: "0123456789ab", Fault: "timeout", Took: time.Second},
			{Channel: "b", Key: "ba9876543210", Vendor: "vendor-7", Took: 300 * time.Millisecond},
		},
	}
}

func write(t *testing.T, client redis.UniversalClient, records ...calllog.Record) {
	t.Helper()
	log := calllog.New(client, &calllog.Options{FlushEvery: time.Hour})
	for i := range records {
		log.Add(&records[i])
	}
	if err := log.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func scan(t *testing.T, r *calllog.Reader, f calllog.Filter, within calllog.Range) calllog.Page {
	t.Helper()
	if within.Limit == 0 {
		within.Limit = 1000
	}
	page, err := r.Scan(t.Context(), f, within)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// scanAll looks on until the log's end: a page takes two seconds at most, in which a busy machine does not read all of it.
func scanAll(t *testing.T, r *calllog.Reader) (calls []calllog.Call) {
	t.Helper()
	for after, more := "", true; more; more = after != "" {
		page := scan(t, r, calllog.Filter{}, calllog.Range{After: after, Limit: 20_000})
		calls, after = append(calls, page.Calls...), page.Next
	}
	return calls
}

func TestRecordComesBackAsItWas(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	want := full()
	write(t, client, want)
	got := scan(t, calllog.NewReader(client, nil), calllog.Filter{}, calllog.Range{}).Calls
	if len(got) != 1 || !reflect.DeepEqual(got[0].Record, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
	if got[0].VendorID() != "vendor-7" {
		t.Errorf("vendor's id %q", got[0].VendorID())
	}
}

func TestLongTextsAreCut(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	long := strings.Repeat("é", 5000)
	r := full()
	r.ID, r.Trace, r.Model, r.Agent, r.Words, r.Channel = long, long, long, long, long, long
	for range 500 {
		r.Tries = append(r.Tries, calllog.Try{Channel: long, Vendor: "last"})
	}
	write(t, client, r)
	if line, _ := calllog.Lines([]calllog.Record{r}); len(line) > 6000 {
		t.Errorf("a record of %d bytes", len(line))
	}
	got := scan(t, calllog.NewReader(client, nil), calllog.Filter{}, calllog.Range{}).Calls
	if len(got) != 1 || len(got[0].Tries) != 8 || got[0].Tries[7].Vendor != "last" || !strings.HasPrefix(got[0].Model, "éé") {
		t.Errorf("got %+v", got)
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	plain := calllog.Record{
		At: noon.Add(time.Minute), Names: calllog.Names{ID: "req_2"}, Caller: calllog.Caller{Token: "tok_b", TokenName: "tok_b"},
		Requested: calllog.Requested{Operation: "createMessage", Model: "m"},
		Outcome:   calllog.Outcome{Status: 200, Channel: "a", Words: `,"model":"forged","token":"tok_a"`},
		Times:     calllog.Times{Took: 40 * time.Millisecond},
	}
	refused := calllog.Record{
		At: noon.Add(2 * time.Minute), Names: calllog.Names{ID: `x","model":"forged`},
		Outcome: calllog.Outcome{Status: 401, Fault: "unauthenticated"},
	}
	write(t, client, full(), plain, refused)
	reader := calllog.NewReader(client, nil)
	yes, no := true, false
	for name, tc := range map[string]struct {
		filter calllog.Filter
		want   string
	}{
		"all":              {calllog.Filter{}, "refused plain full"},
		"token":            {calllog.Filter{Token: "tok_a"}, "full"},
		"model":            {calllog.Filter{Model: "gpt é\x01"}, "full"},
		"beginning":        {calllog.Filter{Model: "gpt"}, ""},
		"forged":           {calllog.Filter{Model: "forged"}, ""},
		"channel":          {calllog.Filter{Channel: "a"}, "plain full"},
		"operation":        {calllog.Filter{Operation: "createMessage"}, "plain"},
		"status":           {calllog.Filter{Status: 401}, "refused"},
		"class":            {calllog.Filter{Status: 5}, "full"},
		"fault":            {calllog.Filter{Fault: "upstream"}, "full"},
		"failed":           {calllog.Filter{Failed: true}, "refused full"},
		"slow":             {calllog.Filter{Slower: time.Second}, "full"},
		"streamed":         {calllog.Filter{Stream: &yes}, "full"},
		"in one piece":     {calllog.Filter{Stream: &no}, "refused plain"},
		"since":            {calllog.Filter{Since: noon.Add(time.Minute)}, "refused plain"},
		"until":            {calllog.Filter{Until: noon.Add(time.Minute)}, "full"},
		"id":               {calllog.Filter{ID: "req_2"}, "plain"},
		"odd id":           {calllog.Filter{ID: `x","model":"forged`}, "refused"},
		"trace":            {calllog.Filter{ID: "4bf92f3577b34da6a3ce929d0e0e4736"}, "full"},
		"vendor's":         {calllog.Filter{ID: "vendor-7"}, "full"},
		"task":             {calllog.Filter{ID: "video_1"}, "full"},
		"no id":            {calllog.Filter{ID: "tok_b"}, ""},
		"id and other's":   {calllog.Filter{ID: "req_2", Token: "tok_a"}, ""},
		"several at once":  {calllog.Filter{Status: 5, Slower: time.Second, Stream: &yes, Token: "tok_a"}, "full"},
		"nothing has both": {calllog.Filter{Status: 5, Channel: "none"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			words := map[string]string{"req_1": "full", "req_2": "plain", refused.ID: "refused"}
			var got []string
			page := scan(t, reader, tc.filter, calllog.Range{})
			for _, call := range page.Calls {
				got = append(got, words[call.ID])
			}
			if text := strings.Join(got, " "); text != tc.want || page.Next != "" {
				t.Errorf("got %q, next %q; want %q", text, page.Next, tc.want)
			}
		})
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	var records []calllog.Record
	for i := range 3000 {
		records = append(records, calllog.Record{
			At: noon, Names: calllog.Names{ID: fmt.Sprint("req_", i)}, Caller: calllog.Caller{Token: fmt.Sprint("t", i%1000)},
			Outcome: calllog.Outcome{Status: 200},
		})
	}
	write(t, client, records...)
	reader := calllog.NewReader(client, nil)
	var got []string
	looked, after := 0, ""
	for {
		page := scan(t, reader, calllog.Filter{Token: "t7"}, calllog.Range{After: after, Limit: 2})
		for _, call := range page.Calls {
			got = append(got, call.ID)
		}
		looked += page.Looked
		if after = page.Next; after == "" {
			break
		}
	}
	if text := strings.Join(got, " "); text != "req_2007 req_1007 req_7" || looked != 3000 {
		t.Errorf("got %s, looked at %d", text, looked)
	}
	newest := scan(t, reader, calllog.Filter{}, calllog.Range{Limit: 10})
	if newest.Calls[0].ID != "req_2999" || newest.Newest != newest.Calls[0].Place {
		t.Fatalf("newest %+v", newest.Calls[0])
	}
	above := scan(t, calllog.NewReader(client, nil), calllog.Filter{}, calllog.Range{Above: newest.Calls[3].Place})
	if len(above.Calls) != 3 || above.Calls[2].ID != "req_2997" || above.Next != "" {
		t.Errorf("above: %+v", above)
	}
	for _, place := range []string{"x", "1", "1-x", "-", "+", "1-1-1-1", "(1-1"} {
		if _, err := reader.Scan(t.Context(), calllog.Filter{}, calllog.Range{After: place, Limit: 1}); !errors.Is(err, calllog.ErrPlace) {
			t.Errorf("after %q: got %v", place, err)
		}
	}
}

func TestOnlyTheNewestAreStored(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	log := calllog.New(client, &calllog.Options{FlushEvery: time.Hour, Recent: 500})
	for i := range 5000 {
		log.Add(&calllog.Record{At: noon, Names: calllog.Names{ID: fmt.Sprint("req_", i)}, Outcome: calllog.Outcome{Status: 200}})
	}
	if err := log.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(scanAll(t, calllog.NewReader(client, nil))); n < 500 || n > 750 { // whole blocks are dropped
		t.Errorf("%d calls are stored, want about 500", n)
	}
}

// TestRefusalsLeaveRoom: a client that calls in a loop and is refused has few records, which count the others.
func TestRefusalsLeaveRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, refusalsLeaveRoom) // a page takes two seconds at most
}

func refusalsLeaveRoom(t *testing.T) {
	client := storagetest.NewServer(t).Client(t)
	log := calllog.New(client, &calllog.Options{FlushEvery: time.Hour})
	for i := range 5000 {
		log.Add(&calllog.Record{
			At: noon, Names: calllog.Names{ID: fmt.Sprint("req_", i)}, Caller: calllog.Caller{Token: "loop"},
			Outcome: calllog.Outcome{Status: 429, Fault: "rate_limited"},
		})
	}
	log.Add(&calllog.Record{At: noon, Caller: calllog.Caller{Token: "other"}, Outcome: calllog.Outcome{Status: 429, Fault: "rate_limited"}})
	for range 50 { // an upstream was asked
		log.Add(&calllog.Record{
			At: noon, Caller: calllog.Caller{Token: "loop"}, Outcome: calllog.Outcome{Status: 502, Fault: "upstream"},
			Tries: []calllog.Try{{Channel: "a"}},
		})
	}
	if err := log.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	reader := calllog.NewReader(client, nil)
	loop := scan(t, reader, calllog.Filter{Token: "loop", Status: 429}, calllog.Range{}).Calls
	if len(loop) != 11 || loop[0].ID != "req_4999" || loop[0].Skipped != 4989 {
		t.Errorf("%d records, the newest %+v", len(loop), loop[0])
	}
	if n := len(scan(t, reader, calllog.Filter{Token: "other"}, calllog.Range{}).Calls); n != 1 {
		t.Errorf("other: %d records", n)
	}
	if n := len(scan(t, reader, calllog.Filter{Token: "loop", Status: 502}, calllog.Range{}).Calls); n != 50 {
		t.Errorf("upstream: %d records", n)
	}
}

// TestManyRefusers: of more tokens than are counted separately, the rest count as one.
func TestManyRefusers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, manyRefusers) // a page takes two seconds at most
}

func manyRefusers(t *testing.T) {
	client := storagetest.NewServer(t).Client(t)
	log := calllog.New(client, &calllog.Options{FlushEvery: time.Hour})
	const counted, more = 1000, 500
	for i := range counted + more {
		log.Add(&calllog.Record{
			At: noon, Caller: calllog.Caller{Token: fmt.Sprint("tok_", i)},
			Outcome: calllog.Outcome{Status: 429, Fault: "rate_limited"},
		})
	}
	if err := log.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	page := scan(t, calllog.NewReader(client, nil), calllog.Filter{}, calllog.Range{Limit: 2 * (counted + more)})
	if len(page.Calls) != counted+11 || page.Calls[0].Skipped != more-11 {
		t.Errorf("%d records, the newest counts for %d more", len(page.Calls), page.Calls[0].Skipped)
	}
}

// TestRedisAway: the newest 10,000 wait, each comes once.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	server := storagetest.NewServer(t)
	client := server.Client(t)
	log := calllog.New(client, &calllog.Options{FlushEvery: time.Hour})
	server.Leave()
	for i := range 12_000 {
		log.Add(&calllog.Record{At: noon, Names: calllog.Names{ID: fmt.Sprint("req_", i)}, Outcome: calllog.Outcome{Status: 200}})
		if i == 100 {
			if err := log.Flush(t.Context()); !errors.Is(err, storage.ErrUnavailable) || !log.Away() {
				t.Errorf("flush: got %v", err)
			}
		}
	}
	server.Return()
	if err := log.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	calls := scanAll(t, calllog.NewReader(client, nil))
	if kept := int64(len(calls)); kept+log.Dropped() != 12_000 || kept < 10_000 || calls[0].ID != "req_11999" {
		t.Fatalf("%d calls are written, %d dropped, the newest %s", kept, log.Dropped(), calls[0].ID)
	}
	seen := map[string]bool{}
	for _, call := range calls {
		if seen[call.ID] {
			t.Fatalf("%s is written twice", call.ID)
		}
		seen[call.ID] = true
	}
}

// TestOneScanEach: scans that one asks for at the same time leave turns to others.
func TestOneScanEach(t *testing.T) {
	t.Parallel()
	client := storagetest.Again(t, storagetest.Redis(t))
	gate := &gate{reached: make(chan struct{}, 100), open: make(chan struct{})}
	client.AddHook(gate)
	reader := calllog.NewReader(client, nil)
	var scans sync.WaitGroup
	look := func(who string, back int) {
		scans.Go(func() {
			filter := calllog.Filter{Model: "none"}
			within := calllog.Range{For: who, Limit: 1, After: fmt.Sprintf("%d-0-1", back+1)} // each reads for itself
			if _, err := reader.Scan(t.Context(), filter, within); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range 8 {
		look("greedy", i)
	}
	<-gate.reached
	look("other", 100) // with all turns taken it would wait for one that cannot end
	<-gate.reached
	select {
	case <-gate.reached:
		t.Error("one has several scans at a time")
	default:
	}
	close(gate.open)
	scans.Wait()
}

func FuzzRecord(f *testing.F) {
	f.Add("a", `"`, "\x00\xff")
	f.Fuzz(func(t *testing.T, id, model, words string) {
		r := calllog.Record{
			At: noon, Names: calllog.Names{ID: id}, Requested: calllog.Requested{Model: model}, Outcome: calllog.Outcome{Words: words},
		}
		calllog.CheckLine(t, &r)
	})
}

// BenchmarkAdd is what the log costs a call.
func BenchmarkAdd(b *testing.B) {
	client := storagetest.Client(b, "redis://127.0.0.1:1")
	log := calllog.New(client, &calllog.Options{FlushEvery: time.Hour})
	r := usual(1)
	for range 20_000 { // so that its blocks are there
		log.Add(&r)
	}
	b.ReportAllocs()
	for b.Loop() {
		log.Add(&r)
	}
}
