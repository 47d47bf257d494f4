package fakeopenai

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"modelrelay/dev/upstream/chat"
	"modelrelay/dev/upstream/fake"
)

// Stored responses, and those that the vendor makes in the background, whether a client reads them or not:
// https://platform.openai.com/docs/guides/background. A response takes as long as its stream.

func (s *api) routeStored(v *fake.Vendor, prefix string) {
	of := func(name string, answer func(x *fake.Exchange, r *madeResponse)) fake.Operation {
		return fake.Operation{Vendor: v, Name: "responses." + name, Answer: func(x *fake.Exchange) {
			id := x.HTTP.PathValue("id")
			r := s.responses.find(id)
			if r == nil || r.key != x.Key {
				Refuse(x, fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Message: "Response with id '" + id + "' not found."})
				return
			}
			x.Accept()
			answer(x, r)
		}}
	}
	s.Handle("GET "+prefix+"/responses/{id}", of("get", answerStored))
	s.Handle("POST "+prefix+"/responses/{id}/cancel", of("cancel", answerCancel))
	s.Handle("DELETE "+prefix+"/responses/{id}", of("delete", func(x *fake.Exchange, r *madeResponse) {
		r.cancel()
		s.responses.remove(r.id)
		setHeaders(x)
		x.JSON(http.StatusOK, map[string]any{"id": r.id, "object": "response", "deleted": true})
	}))
}

// madeResponse is a response that is stored.
type madeResponse struct {
	id, key string
	// background: it was created so. events are those of its stream; nil if it was created without.
	background bool
	events     [][]byte
	begun      response // while it is made
	whole      response
	created    time.Time
	takes      time.Duration

	mu        sync.Mutex
	cancelled bool
}

// now returns the response as it is.
func (r *madeResponse) now() response {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch o := r.begun; {
	case r.cancelled:
		o.Status = "cancelled"
		return o
	case time.Since(r.created) < r.takes:
		o.Status = "in_progress"
		return o
	}
	return r.whole
}

// cancel ends a response in progress.
func (r *madeResponse) cancel() {
	if ends := r.now().Status; ends == "in_progress" {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.cancelled = true
	}
}

// keepMade stores the response to a call.
func (s *api) keepMade(x *fake.Exchange, q *responseRequest, o response, reply *chat.Reply, items []any) *madeResponse {
	r := &madeResponse{id: o.ID, key: x.Key, background: o.Background, begun: o, whole: o, created: time.Now()}
	r.whole.complete(reply, items)
	w := responseStream{x: x, ok: true, emit: func(name string, v any) bool {
		data, _ := json.Marshal(v) // it always marshals
		r.events = append(r.events, []byte("event: "+name+"\ndata: "+string(data)+"\n\n"))
		return true
	}}
	if o.Background {
		w.run(&o, reply, items)
		r.takes = time.Duration(len(r.events)) * s.Settings.ChunkInterval
	}
	if !q.Stream {
		r.events = nil
	}
	s.responses.add(r)
	return r
}

// answerBackground answers the create of a response in the background.
func (s *api) answerBackground(x *fake.Exchange, q *responseRequest, o response, reply *chat.Reply, items []any) {
	o.Background, o.Status = true, "queued"
	r := s.keepMade(x, q, o, reply, items)
	setHeaders(x)
	limitHeaders(x)
	if q.Stream {
		r.stream(x, 0)
	} else {
		x.JSON(http.StatusOK, o)
	}
	x.Served(reply.Made()) // it is made, whether its client reads it or not
}

// stream sends the events from the n-th on.
func (r *madeResponse) stream(x *fake.Exchange, n int) {
	x.Stream()
	for ; n < len(r.events); n++ {
		if !x.Pause() || r.now().Status == "cancelled" || !x.Send(r.events[n]) {
			return
		}
	}
}

func answerStored(x *fake.Exchange, r *madeResponse) {
	query := x.HTTP.URL.Query()
	if query.Get("stream") != "true" {
		setHeaders(x)
		x.JSON(http.StatusOK, r.now())
		return
	}
	next := 0
	if text := query.Get("starting_after"); text != "" {
		after, err := strconv.Atoi(text)
		if err != nil {
			Refuse(x, fake.Problem{
				Status: http.StatusBadRequest, Kind: fake.Invalid, Param: "starting_after",
				Message: "Invalid 'starting_after': expected an integer.",
			})
			return
		}
		next = after + 1
	}
	if r.events == nil {
		Refuse(x, fake.Problem{
			Status: http.StatusBadRequest, Kind: fake.Invalid, Param: "stream",
			Message: "This response cannot be streamed because it was not created with background=true and stream=true.",
		})
		return
	}
	setHeaders(x)
	r.stream(x, next)
}

func answerCancel(x *fake.Exchange, r *madeResponse) {
	if !r.background {
		Refuse(x, fake.Problem{Status: http.StatusBadRequest, Kind: fake.Invalid, Message: "Cannot cancel a synchronous response."})
		return
	}
	r.cancel()
	setHeaders(x)
	x.JSON(http.StatusOK, r.now())
}
