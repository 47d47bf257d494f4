package calllog_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"modelrelay/storage"
	"modelrelay/storage/calllog"
	"modelrelay/storage/storagetest"
)

// memoryFiles are an archive in memory. Away refuses.
type memoryFiles struct {
	mu    sync.Mutex
	away  bool
	files map[string][]byte
	opens int
	// stored, where not nil, receives each file.
	stored chan string
}

func (m *memoryFiles) Put(_ context.Context, name string, content []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return storage.ErrUnavailable
	}
	if m.files == nil {
		m.files = map[string][]byte{}
	}
	if m.files[name] != nil {
		return fmt.Errorf("%s is written twice", name)
	}
	m.files[name] = slices.Clone(content)
	if m.stored != nil {
		m.stored <- name
	}
	return nil
}

func (m *memoryFiles) Open(_ context.Context, name string) (io.ReadCloser, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opens++
	if m.away {
		return nil, 0, storage.ErrUnavailable
	}
	content, ok := m.files[name]
	if !ok {
		return nil, 0, storage.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(content)), int64(len(content)), nil
}

func (m *memoryFiles) names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := make([]string, 0, len(m.files))
	for name := range m.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (m *memoryFiles) Folders(_ context.Context, folder string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		last := ""
		for _, name := range m.names() {
			rest, below := strings.CutPrefix(name, folder)
			base, _, deeper := strings.Cut(rest, "/")
			if below && deeper && base != last && !yield(folder+base+"/", nil) {
				return
			}
			last = base
		}
	}
}

func (m *memoryFiles) List(_ context.Context, folder string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, name := range m.names() {
			if strings.HasPrefix(name, folder) && !yield(name, nil) {
				return
			}
		}
	}
}

// every finds all calls that a filter selects, page by page.
func every(t *testing.T, r *calllog.Reader, f calllog.Filter, limit int) (ids []string, looked int) {
	t.Helper()
	for after := ""; ; {
		page := scan(t, r, f, calllog.Range{After: after, Limit: limit})
		for _, call := range page.Calls {
			ids = append(ids, call.ID)
		}
		looked += page.Looked
		if after = page.Next; after == "" {
			return ids, looked
		}
	}
}

// TestHistoryGoesOnWhereRedisEnds: the history has the calls that Redis has dropped. Each call is read once, across the boundary and across
// pages.
func TestHistoryGoesOnWhereRedisEnds(t *testing.T) {
	t.Parallel()
	client, files := storagetest.Redis(t), new(memoryFiles)
	history := calllog.NewHistory(files, &calllog.HistoryOptions{Lines: 100 << 10})
	log := calllog.New(client, &calllog.Options{FlushEvery: time.Hour, Recent: 300, History: history.Take})
	const calls = 2000
	var want []string
	for i := range calls {
		r := full()
		r.At, r.ID, r.Task, r.Trace = noon.Add(time.Duration(i)*time.Millisecond), fmt.Sprintf("req_%04d", i), "", ""
		if r.Model = "gpt"; i%100 == 0 {
			r.Model = "rare"
		}
		log.Add(&r)
		want = append(want, r.ID)
	}
	for _, end := range []func(context.Context) error{log.Close, history.Close} {
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	kept := len(scanAll(t, calllog.NewReader(client, nil)))
	if kept >= calls || len(files.names()) < 5 {
		t.Fatalf("%d calls in Redis, files %v: nothing to be tested", kept, files.names())
	}
	reader := calllog.NewReader(client, files)
	slices.Reverse(want)
	for _, limit := range []int{7, 250, 1000} {
		got, looked := every(t, reader, calllog.Filter{}, limit)
		if !slices.Equal(got, want) || looked != calls {
			t.Fatalf("limit %d: %d calls, %d looked at, want all %d in their order", limit, len(got), looked, calls)
		}
	}
	rare, _ := every(t, reader, calllog.Filter{Model: "rare"}, 3)
	if len(rare) != calls/100 || rare[0] != "req_1900" || rare[len(rare)-1] != "req_0000" {
		t.Errorf("a model in the history: %v", rare)
	}
	if one, _ := every(t, reader, calllog.Filter{ID: "req_0003"}, 1); !slices.Equal(one, []string{"req_0003"}) {
		t.Errorf("a call of the history by its id: %v", one)
	}
	first := scan(t, reader, calllog.Filter{}, calllog.Range{Limit: calls})
	if first.Next == "" || len(first.Calls) != kept {
		t.Errorf("the first page has %d calls, Redis %d", len(first.Calls), kept)
	}
	if live := scan(t, reader, calllog.Filter{}, calllog.Range{Above: first.Newest}); live.Next != "" || live.Looked != 0 {
		t.Errorf("what is new: %+v", live)
	}
	if without, _ := every(t, calllog.NewReader(client, nil), calllog.Filter{}, calls); len(without) != kept {
		t.Errorf("without a history: %d calls", len(without))
	}
}

// TestHistoryGoesOnWithinABlock: if Redis has dropped the block in which a page ended, the next page continues in the history.
func TestHistoryGoesOnWithinABlock(t *testing.T) {
	t.Parallel()
	client, files := storagetest.Redis(t), new(memoryFiles)
	history := calllog.NewHistory(files, nil)
	log := calllog.New(client, &calllog.Options{FlushEvery: time.Hour, History: history.Take})
	for i := range 100 {
		log.Add(&calllog.Record{At: noon, Names: calllog.Names{ID: fmt.Sprint("req_", i)}, Outcome: calllog.Outcome{Status: 200}})
	}
	for _, end := range []func(context.Context) error{log.Close, history.Close} {
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	reader := calllog.NewReader(client, files)
	page := scan(t, reader, calllog.Filter{}, calllog.Range{Limit: 30})
	client.Del(t.Context(), "mr:calls")
	var got []string
	for after := page.Next; after != ""; after = page.Next {
		page = scan(t, reader, calllog.Filter{}, calllog.Range{After: after})
		for _, call := range page.Calls {
			got = append(got, call.ID)
		}
	}
	if len(got) != 70 || got[0] != "req_69" || got[69] != "req_0" {
		t.Errorf("%d calls after the first 30: %v", len(got), got)
	}
}

// TestHistoryOpensWhatATimeNeeds: a search by time opens only the files that may have it. Records are read completely.
func TestHistoryOpensWhatATimeNeeds(t *testing.T) {
	t.Parallel()
	client, files := storagetest.Redis(t), new(memoryFiles)
	history := calllog.NewHistory(files, &calllog.HistoryOptions{Lines: 1})
	log := calllog.New(client, &calllog.Options{FlushEvery: time.Hour, History: history.Take})
	now := time.Now().UTC().Truncate(time.Millisecond)
	var want []calllog.Record
	for i := range 6 {
		r := full()
		r.At, r.ID = now.Add(time.Duration(i-20)*time.Hour), fmt.Sprintf("req_%d", i)
		log.Add(&r)
		if err := log.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := history.Flush(t.Context()); err != nil { // six files at once are more than wait
			t.Fatal(err)
		}
		want = append(want, r)
	}
	for _, end := range []func(context.Context) error{log.Close, history.Close} {
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	client.Del(t.Context(), "mr:calls")
	reader := calllog.NewReader(client, files)
	got, _ := every(t, reader, calllog.Filter{Until: now.Add(-18 * time.Hour)}, 10)
	if !slices.Equal(got, []string{"req_1", "req_0"}) || files.opens != 2 {
		t.Errorf("before a time: %v, %d files opened", got, files.opens)
	}
	files.opens = 0
	if got, _ := every(t, reader, calllog.Filter{Since: now.Add(time.Hour)}, 10); got != nil || files.opens != 0 {
		t.Errorf("after the last: %v, %d files opened", got, files.opens)
	}
	page := scan(t, reader, calllog.Filter{}, calllog.Range{})
	page = scan(t, reader, calllog.Filter{}, calllog.Range{After: page.Next, Limit: 1})
	if len(page.Calls) != 1 || fmt.Sprint(page.Calls[0].Record) != fmt.Sprint(want[5]) {
		t.Errorf("got  %+v\nwant %+v", page.Calls, want[5])
	}
}

// TestHistoryOfManyHours: a scan finds a call in the oldest of many folders.
func TestHistoryOfManyHours(t *testing.T) {
	t.Parallel()
	client, files := storagetest.Redis(t), new(memoryFiles)
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, `{"at":1,"id":"req_first","written":"1-0-0"}`+"\n")
	_ = w.Close()
	const hours = 1100
	for i := range hours {
		name, content := "A-1-2.jsonl.zst", packed.Bytes()
		if i > 0 {
			name, content = "notes.txt", []byte("no call")
		}
		if err := files.Put(t.Context(), "calls/"+noon.Add(time.Duration(i)*time.Hour).UTC().Format("2006-01-02/15")+"/"+name,
			content); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := every(t, calllog.NewReader(client, files), calllog.Filter{}, 10); !slices.Equal(got, []string{"req_first"}) {
		t.Errorf("behind %d folders: %v", hours, got)
	}
}

// TestHistoryWaitsForTheArchive: while the archive is unavailable, at most the oldest files are lost, and the relay does not wait.
func TestHistoryWaitsForTheArchive(t *testing.T) {
	t.Parallel()
	client, files := storagetest.Redis(t), &memoryFiles{away: true, stored: make(chan string, 10)}
	history := calllog.NewHistory(files, &calllog.HistoryOptions{Lines: 1, Again: time.Millisecond})
	line := func(i int) []byte { return fmt.Appendf(nil, "{\"at\":%d,\"id\":\"req_%d\"}\n", noon.UnixMilli(), i) }
	for i := range 6 {
		history.Take(line(i), fmt.Sprint(i+1, "-0"))
	}
	if err := history.Flush(t.Context()); err == nil {
		t.Error("an archive that is away takes files")
	}
	if got := history.Dropped(); got != 2 {
		t.Errorf("%d calls were dropped, want those of the two oldest files", got)
	}
	reader := calllog.NewReader(client, files)
	files.mu.Lock()
	files.away = false
	files.mu.Unlock()
	for range 4 {
		<-files.stored
	}
	if got, _ := every(t, reader, calllog.Filter{}, 10); len(got) != 4 {
		t.Errorf("read %v", got)
	}
	files.mu.Lock()
	files.away = true
	files.mu.Unlock()
	first := scan(t, reader, calllog.Filter{}, calllog.Range{})
	if _, err := reader.Scan(t.Context(), calllog.Filter{}, calllog.Range{After: first.Next, Limit: 1}); err == nil {
		t.Error("an archive that is away: no error")
	}
	_ = history.Close(t.Context())
}

// hungFiles are an archive that hangs: it signals asked for each read, which ends with its context.
type hungFiles struct {
	memoryFiles

	asked chan struct{}
}

func (h *hungFiles) Folders(ctx context.Context, _ string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		h.asked <- struct{}{}
		<-ctx.Done()
		yield("", ctx.Err())
	}
}

// TestHistoryThatHangs: a read of the history that hangs does not delay reads of the newest calls.
func TestHistoryThatHangs(t *testing.T) {
	t.Parallel()
	client, files := storagetest.Redis(t), &hungFiles{asked: make(chan struct{})}
	reader := calllog.NewReader(client, files)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for range 4 {
		all.Go(func() {
			if _, err := reader.Scan(ctx, calllog.Filter{}, calllog.Range{After: "h1-0-0", Limit: 1}); err == nil {
				t.Error("an archive that hangs: no error")
			}
		})
		<-files.asked
	}
	soon, end := context.WithTimeout(t.Context(), 10*time.Second)
	defer end()
	if _, err := reader.Scan(soon, calllog.Filter{}, calllog.Range{Limit: 1}); err != nil {
		t.Errorf("the newest calls: %v", err)
	}
}

// TestHistoryOfStrangers: files and places of another form are ignored.
func TestHistoryOfStrangers(t *testing.T) {
	t.Parallel()
	client, files := storagetest.Redis(t), new(memoryFiles)
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, "no json\n{\"at\":1}\n\n{\"at\":")
	_ = w.Close()
	for name, content := range map[string][]byte{
		"calls/2026-01-31/12/A-1-2.jsonl.zst": []byte("no zstd"),
		"calls/2026-01-31/12/A-1-3.jsonl.zst": packed.Bytes(),
		"calls/2026-01-31/12/A-1-4.jsonl.zst": packed.Bytes()[:9],
		"calls/2026-01-31/12/notes.txt":       nil,
		"calls/2026-01-31/noon/A-1-2":         nil,
		"calls/notes/12/A-1-2.jsonl.zst":      nil,
	} {
		if err := files.Put(t.Context(), name, append(content, 0)[:len(content)]); err != nil {
			t.Fatal(err)
		}
	}
	reader := calllog.NewReader(client, files)
	if ids, _ := every(t, reader, calllog.Filter{Model: "gpt"}, 10); ids != nil {
		t.Errorf("found %v", ids)
	}
	for _, place := range []string{
		"h", "h-1", "h1", "h1-0-0/2026-01-31", "h1-0-0/2026-01-31/24", "h1-0-0/2026-01-31/12/A", "h1-0-0/2026-01-31/12/A-1-2/x",
		"h1-0-0/../12/A-1-2/0", "h1-0-0/2026-01-31/12/A-1-2/0/0",
	} {
		if _, err := reader.Scan(t.Context(), calllog.Filter{}, calllog.Range{After: place, Limit: 1}); err == nil {
			t.Errorf("%q is a place", place)
		}
	}
}
