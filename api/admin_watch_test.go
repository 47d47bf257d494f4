package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

func (o *fakeOperator) Deliveries(
	_ context.Context, filter tasks.DeliveryFilter, cursor []byte, limit int,
) ([]tasks.ListedDelivery, []byte, error) {
	o.deliveries, o.cursors = append(o.deliveries, filter), append(o.cursors, string(cursor))
	if len(cursor) > 0 {
		return nil, nil, o.err
	}
	return []tasks.ListedDelivery{{ID: "notify_video_1_failed", Task: "video_1", Event: "video.failed", State: workflows.PhaseUndelivered}},
		[]byte{byte(limit)}, o.err
}

func (o *fakeOperator) Counts(context.Context) (tasks.Counts, error) {
	return tasks.Counts{
		Phases: map[workflows.Phase]int64{workflows.PhaseQueued: 12, workflows.PhasePolling: 48}, Stuck: 3, Workers: 2,
		Failed: 2, Undelivered: 1, At: day,
	}, o.err
}

func (o *fakeOperator) Task(_ context.Context, id string) (tasks.Task, error) {
	if id != o.made.ID {
		return tasks.Task{}, providers.Faultf(providers.NotFound, "There is no task %q.", id)
	}
	return o.made, o.err
}

// TestAdminTaskCounts: what there is of tasks in one answer, and 503 while the engine is away.
func TestAdminTaskCounts(t *testing.T) {
	t.Parallel()
	o := newAdminEnv(t)
	var counts struct {
		Object                                                                      string
		Queued, Submitting, Polling, Archiving, Stuck, Failed, Undelivered, Workers int64
		CountedAt                                                                   time.Time `json:"counted_at"`
	}
	o.tell(t, 200, "GET", "/admin/tasks/counts", "", &counts)
	if counts.Object != "task_counts" || counts.Queued != 12 || counts.Polling != 48 || counts.Submitting != 0 || counts.Stuck != 3 ||
		counts.Failed != 2 ||
		counts.Undelivered != 1 || counts.Workers != 2 || !counts.CountedAt.Equal(day) {
		t.Errorf("got %+v", counts)
	}
	o.operator.err = &providers.Fault{Kind: providers.Overloaded, Message: "The task engine is not available now.", RetryAfter: time.Second}
	if rec := o.ask(t, "GET", "/admin/tasks/counts", ""); rec.Code != 503 || rec.Header().Get("Retry-After") == "" {
		t.Errorf("the engine away: got %d %s", rec.Code, rec.Body)
	}
}

// TestAdminDeliveries lists webhooks: those that were given up unless others are asked for.
func TestAdminDeliveries(t *testing.T) {
	t.Parallel()
	o := newAdminEnv(t)
	var page struct {
		Data  []struct{ ID, Task, Event, State string }
		After *string
	}
	o.tell(t, 200, "GET", "/admin/deliveries?token=anna&model=sora-2&since=2026-01-01&until=2026-02-01&limit=9", "", &page)
	want := tasks.DeliveryFilter{
		Token: "anna", Model: "sora-2", Phase: workflows.PhaseUndelivered,
		Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Until: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC),
	}
	if len(o.operator.deliveries) != 1 || o.operator.deliveries[0] != want || len(page.Data) != 1 || page.Data[0].Task != "video_1" ||
		page.After == nil {
		t.Fatalf("asked %+v, got %+v", o.operator.deliveries, page)
	}
	o.tell(t, 200, "GET", "/admin/deliveries?state=any&after="+*page.After, "", &page)
	if page.Data == nil || len(page.Data) != 0 || page.After != nil || o.operator.cursors[1] != "\x09" ||
		o.operator.deliveries[1].Phase != "" {
		t.Errorf("second page %+v of %q for %+v", page, o.operator.cursors, o.operator.deliveries[1])
	}
	for _, query := range []string{
		"state=lost", "limit=501", "after=AAAA", "since=yesterday", "since=2026-02-01&until=2026-01-01",
		"model=a%00", "token=%FF",
	} {
		if rec := o.ask(t, "GET", "/admin/deliveries?"+query, ""); rec.Code != 400 {
			t.Errorf("%s: got %d %s, want 400", query, rec.Code, rec.Body)
		}
	}
	if rec := o.ask(t, "GET", "/admin/tasks?since=2026-02-01&until=2026-02-01", ""); rec.Code != 400 {
		t.Errorf("tasks of no time: got %d %s, want 400", rec.Code, rec.Body)
	}
	if o.tell(t, 200, "GET", "/admin/tasks?until=2026-02-01", "", &page); !o.operator.filters[0].Until.Equal(want.Until) {
		t.Errorf("until: asked %+v", o.operator.filters)
	}
}

// TestAdminContent: an operator has the video of every token, by ranges, as its client does, and the log names the task.
func TestAdminContent(t *testing.T) {
	t.Parallel()
	o := newAdminEnv(t)
	finished(o.gateway)
	o.operator.made = o.tasks.byID["video_1"]
	const path = "/admin/tasks/video_1/content"
	for _, test := range []struct {
		method, path, ranges string
		status               int
		body                 string
	}{
		{"GET", path, "", 200, clip},
		{"HEAD", path, "", 200, ""},
		{"GET", path, "bytes=2-4", 206, "234"},
		{"GET", path, "bytes=10-", 416, ""},
		{"GET", path + "?index=1&variant=thumbnail", "", 200, "small"},
		{"GET", path + "?index=2", "", 404, ""},
		{"GET", path + "?index=x", "", 400, ""},
		{"GET", "/admin/tasks/video_2/content", "", 404, ""},
	} {
		var headers []string
		if test.ranges != "" {
			headers = []string{"Range", test.ranges}
		}
		rec := o.ask(t, test.method, test.path, "", headers...)
		if rec.Code != test.status || test.body != "" && rec.Body.String() != test.body {
			t.Errorf("%s %s %s: got %d %s, want %d %s", test.method, test.path, test.ranges, rec.Code, rec.Body, test.status, test.body)
		}
		if rec.Code == 200 && (rec.Header().Get("Content-Security-Policy") != "default-src 'none'; sandbox" ||
			rec.Header().Get("X-Content-Type-Options") != "nosniff" ||
			rec.Header().Get("Cache-Control") != "private, no-store") {
			t.Errorf("%s %s: headers %v", test.method, test.path, rec.Header())
		}
	}
	if !strings.Contains(o.log.String(), `"subject":"video_1"`) {
		t.Errorf("the log does not say which task: %s", o.log.String())
	}
	o.operator.made.State = workflows.Failed
	if rec := o.ask(t, "GET", path, ""); rec.Code != 404 {
		t.Errorf("of a failed task: got %d", rec.Code)
	}
}
