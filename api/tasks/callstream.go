package tasks

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"modelrelay/activities"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/storage/eventlog"
	"modelrelay/workflows/tasks"
)

const (
	// streamEndWait is how long a stream stays open after its last event, until its call has ended: then a client that has read the whole
	// stream finds an ended call.
	streamEndWait = 10 * time.Second
	// endWait is how long a call waits for the end of the call from which it continues: the client may have sent it directly after the last
	// event.
	endWait = time.Second
)

func (s *Service) serveStream(x *edge.Request, r *http.Request, of tasks.Task) error {
	after := int64(-1)
	last := r.URL.Query().Get("after")
	if header := r.Header.Get("Last-Event-ID"); header != "" {
		last = header
	}
	if last != "" {
		n, ok := strings.CutPrefix(last, of.ID+"-")
		number, err := strconv.ParseUint(n, 10, 62)
		if !ok || err != nil {
			return providers.InvalidField("after", "Invalid request: the event id is not from this task.")
		}
		after = int64(number)
	}
	return s.Stream(x, r, of, after, nil, func(event eventlog.Piece) []byte {
		if !event.Begins {
			return event.Data
		}
		return append([]byte("id: "+of.ID+"-"+strconv.FormatInt(event.N, 10)+"\n"), event.Data...)
	})
}

// Stream streams the events of a call after a number, converted by show, until the call ends. It sends the first events before the log has
// any. request is the body of the create; nil: it is read if needed.
func (s *Service) Stream(
	x *edge.Request, r *http.Request, of tasks.Task, after int64, request []byte, show func(event eventlog.Piece) []byte,
) error {
	whole := func(n int64, event []byte) []byte {
		return show(eventlog.Piece{N: n, Data: event, Begins: true, Ends: true})
	}
	opening, err := s.openingEvents(r.Context(), of, request)
	if err != nil {
		return err
	}
	stream, done, err := s.reader.begin(x)
	if err != nil {
		return err
	}
	defer done()
	ctx, stop := s.edge.UntilStopping(r.Context())
	defer stop()
	x.Outcome.Model = of.Request.Model
	s.edge.Speak(x, of.Format)
	out := &liveStream{out: stream}
	for n := after + 1; n < int64(len(opening)); n++ {
		if err := out.write(whole(n, opening[n]), true); err != nil {
			return err
		}
	}
	opened := int64(len(opening)) - 1
	after = max(after, opened)
	last := after
	x.ReleaseBody() // of the create: a call may take long
	reading, end := context.WithCancelCause(ctx)
	defer end(nil)
	var watching sync.WaitGroup
	watching.Go(func() { s.attend(reading, end, of, out) })
	err = s.Events.Read(reading, of.ID, activities.EventsFolder(of.Folder()), after, func(event eventlog.Piece) error {
		last = event.N
		return out.write(show(event), event.Ends)
	})
	if err != nil {
		end(nil)
	}
	limit := time.AfterFunc(streamEndWait, func() { end(nil) })
	watching.Wait()
	limit.Stop()
	var (
		failed *noEvents
		ahead  *eventlog.AheadError
	)
	switch {
	case err == nil || ctx.Err() != nil && r.Context().Err() == nil && !out.within: // the end; or the process stops, and the client reconnects
		return nil
	case edge.IsClientGone(r.Context()):
		return r.Context().Err()
	case r.Context().Err() != nil: // the token may no longer be used
		err = context.Cause(r.Context())
	case errors.As(context.Cause(reading), &failed):
		if failed.fault == nil || after == opened+1 { // the stream has the error event
			return nil
		}
		err, last = failed.fault, opened // any other stored event was lost
	case errors.As(err, &ahead):
		err = &providers.Fault{Kind: providers.Upstream, Message: "Events of the stream were lost.", Err: err}
		last = ahead.Events - 2 // the error event gets the number of the last stored event
	}
	fault := providers.AsFault(err)
	if out.within {
		x.Fault = fault
		panic(http.ErrAbortHandler) // the client must detect the incomplete event, and resume before it
	}
	if fault.Kind != providers.Canceled {
		staged := activities.StagedCall{Path: strings.TrimPrefix(of.Operation, http.MethodPost+" "), Format: of.Format}
		_ = out.write(whole(last+1, s.Faults(staged, fault, last+1)), true) // the client may have left
	}
	return fault
}

// openingEvents returns the first events of a call's log, which are available before the call is sent.
func (s *Service) openingEvents(ctx context.Context, of tasks.Task, request []byte) (events [][]byte, err error) {
	open := s.Opening(of)
	if open == nil {
		return nil, nil
	}
	if request == nil {
		if request, err = s.Request(ctx, of); err != nil {
			return nil, err
		}
	}
	return open(request), nil
}

// noEvents reports the end of a call without events. fault is nil for a cancelled call.
type noEvents struct{ fault *providers.Fault }

// Error implements error.
func (*noEvents) Error() string { return "the call ended without events" }

// attend sends a comment after each silence, and ends the read of the log if the call ends without events.
func (s *Service) attend(ctx context.Context, end context.CancelCauseFunc, of tasks.Task, out *liveStream) {
	for ctx.Err() == nil {
		if of.Ended() {
			if of.Call == nil || of.Call.Events == 0 {
				none := new(noEvents)
				if statusOf(of) == "failed" {
					_, none.fault = faultOf(of)
				}
				end(none)
			}
			return
		}
		quiet, cancel := context.WithTimeout(ctx, s.reader.Every)
		task, err := s.Tasks.Watch(quiet, of)
		cancel()
		switch {
		case err == nil:
			of = task
		case ctx.Err() != nil:
			return
		case quiet.Err() != nil:
			if out.comment(s.reader.Every) != nil {
				return
			}
		default:
			end(err)
			return
		}
	}
}

// liveStream is a stream to which events and comments are written concurrently.
type liveStream struct {
	mu     sync.Mutex
	out    *EventStream
	last   time.Time
	within bool // a part of an event was written
}

// write writes a piece of an event; ends: it is the last piece.
func (l *liveStream) write(piece []byte, ends bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.within = time.Now(), !ends
	return l.out.WriteEvent(piece)
}

// comment sends a comment unless something was sent within the silence. It sends none within an event.
func (l *liveStream) comment(silence time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.within || time.Since(l.last) < silence {
		return nil
	}
	l.last = time.Now()
	return l.out.WriteEvent([]byte(keepAlive))
}
