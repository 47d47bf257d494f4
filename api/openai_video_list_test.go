package api_test

import (
	"reflect"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/workflows/tasks"
)

func TestVideoList(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	rec := g.do(t, request("GET", "/v1/videos", ""))
	const empty = `{"object":"list","data":[],"first_id":null,"last_id":null,"has_more":false}`
	if got := strings.TrimSpace(rec.Body.String()); rec.Code != 200 || got != empty {
		t.Errorf("got %d %s, want %s", rec.Code, got, empty)
	}
	g.tasks.page = tasks.Page{Tasks: []tasks.Task{running(10), failed(20)}, More: true, Last: "video_2"}
	g.tasks.page.Tasks[1].ID = "video_2"
	rec = g.do(t, request("GET", "/v1/videos?after=video_0&limit=2&order=asc", ""))
	var list struct {
		Object, FirstID, LastID string
		Data                    []map[string]any
		HasMore                 bool
	}
	body := strings.NewReplacer("first_id", "FirstID", "last_id", "LastID", "has_more", "HasMore").Replace(rec.Body.String())
	decode(t, []byte(body), &list)
	if rec.Code != 200 || list.Object != "list" || len(list.Data) != 2 || list.FirstID != "video_1" || list.LastID != "video_2" ||
		!list.HasMore ||
		len(list.Data[0]) != 13 || list.Data[0]["progress"] != float64(10) {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
	want := []tasks.ListQuery{
		{TokenID: "good", Limit: 20, Kind: "video"},
		{TokenID: "good", After: "video_0", Limit: 2, Ascending: true, Kind: "video"},
	}
	if !reflect.DeepEqual(g.tasks.queries, want) {
		t.Errorf("got %+v, want %+v", g.tasks.queries, want)
	}
}

func TestVideoListFaults(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	for query, param := range map[string]string{
		"limit=0": "limit", "limit=101": "limit", "limit=x": "limit", "limit=-1": "limit", "limit=1.5": "limit", "order=up": "order",
		"order=DESC": "order",
	} {
		rec := g.do(t, request("GET", "/v1/videos?"+query, ""))
		if code, got := fault(t, rec); rec.Code != 400 || code != "invalid_request" || got != param {
			t.Errorf("%s: got %d %s, want 400 on %s", query, rec.Code, rec.Body, param)
		}
	}
	if len(g.tasks.queries) != 0 {
		t.Error("a bad page was asked for")
	}
	g.tasks.err = providers.InvalidField("after", "No such task.")
	rec := g.do(t, request("GET", "/v1/videos?after=video_0", ""))
	if _, param := fault(t, rec); rec.Code != 400 || param != "after" {
		t.Errorf("an unknown cursor: got %d %s", rec.Code, rec.Body)
	}
}

func TestVideoDelete(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/v1/videos/video_1", generations + "/video_1"} {
		g := newGateway(t, nil, nil)
		finished(g)
		rec := g.do(t, request("DELETE", path, ""))
		if got, want := strings.TrimSpace(rec.Body.String()), `{"id":"video_1","object":"video.deleted","deleted":true}`; rec.Code != 200 ||
			got != want {
			t.Errorf("%s: got %d %s, want %s", path, rec.Code, got, want)
		}
		for _, route := range [][2]string{
			{"GET", "/v1/videos/video_1"},
			{"GET", generations + "/video_1"},
			{"GET", "/v1/videos/video_1/content"},
			{"GET", "/v1/videos/video_1/events"},
			{"DELETE", path},
		} {
			if rec := g.do(t, request(route[0], route[1], "")); rec.Code != 404 {
				t.Errorf("%v after its deletion: got %d %s", route, rec.Code, rec.Body)
			}
		}
	}
}
