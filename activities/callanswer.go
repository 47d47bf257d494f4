package activities

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/sse"
	"modelrelay/storage"
	"modelrelay/storage/archive"
	"modelrelay/storage/eventlog"
)

// nth returns the number of the claim whose answer this try stores: its own, or the last known one.
func (c *calling) nth() int { return max(1, c.claimed) }

// stored returns the stored answer of an earlier try, of the last claim first, or storage.ErrNotFound. An answer with only a record is
// lost.
func (c *calling) stored(ctx context.Context) (answer Answered, err error) {
	for n := c.nth(); n > 0; n-- {
		if answer, err = c.storedUnder(ctx, n); !errors.Is(err, storage.ErrNotFound) {
			break
		}
	}
	return answer, err
}

// storedUnder returns the answer that was stored under the n-th claim.
func (c *calling) storedUnder(ctx context.Context, n int) (answer Answered, err error) {
	if err := c.Objects.GetJSON(ctx, c.in.answer(n), &answer); err != nil {
		return Answered{}, err
	}
	if answer.Output.Object == "" {
		log, err := c.Events.Ended(ctx, c.in.events())
		if err != nil {
			return Answered{}, err
		}
		answer.Events = log.Events
		if answer.Output, err = c.streamed(ctx, log, answer.Output.ContentType); err != nil {
			return Answered{}, err
		}
	}
	body, err := c.Objects.Open(ctx, answer.Output.Object)
	if err != nil {
		return Answered{}, err
	}
	defer func() { _ = body.Close() }() // it was only read
	sum := sha256.New()
	answer.Output.Size, err = io.Copy(sum, body)
	answer.Output.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return answer, err
}

func tooLate() *providers.VideoFailure {
	return &providers.VideoFailure{Code: "deadline_exceeded", Message: "The call did not end in time."}
}

const lostMessage = "The upstream may have answered the call, but its answer was lost."

func lostFailure() *providers.VideoFailure {
	return &providers.VideoFailure{Code: "upstream_unknown", Message: lostMessage}
}

// unknown is the end of a call whose answer is lost and which is not sent again.
func (c *calling) unknown(ctx context.Context) (Answered, error) {
	if err := c.takeClaims(context.WithoutCancel(ctx)); err != nil { // a repeat may have been lost too
		return Answered{}, again(record(err), storeRetry)
	}
	c.update(func(p *CallProgress) {
		p.Lost = max(1, c.sent())
		p.Attempts = max(p.Attempts, p.Lost)
	})
	return c.endEarlier(ctx, Answered{Unknown: true, Failure: lostFailure()}, new(CallRun))
}

// endEarlier is the end of a call that this try did not answer. It also ends the stream of an earlier try, if readers may have seen events.
func (c *calling) endEarlier(ctx context.Context, as Answered, run *CallRun) (Answered, error) {
	seen, err := c.seen(ctx)
	if err == nil && seen {
		err = c.openEvents(ctx)
	}
	if err != nil {
		return Answered{}, again(record(err), storeRetry)
	}
	return c.cut(ctx, &callOutput{status: http.StatusOK, sent: http.Header{"Content-Type": {eventStream}}}, run, as)
}

func archiveFailed() *providers.VideoFailure {
	return &providers.VideoFailure{Code: "archive_failed", Message: "The answer could not be archived."}
}

const eventStream = "text/event-stream"

// ended adds the progress and the cost of the call to its answer.
func (c *calling) ended(answer Answered, run *CallRun) Answered {
	answer.CallProgress, answer.Usage, answer.Priced = c.shown(), run.Usage, run.Priced || c.in.Call.Amount > 0
	answer.Copy = cmp.Or(answer.Ticket, run.Copy)
	answer.Stage, answer.Unsent, answer.Ticket, answer.GoneSince, answer.Position = "", nil, nil, time.Time{}, 0
	answer.Cost = run.Cost + int64(answer.Lost)*c.in.Call.Amount
	return answer
}

// store writes the record of the answer to the archive, then the answer. as.Failure is the failure if it is already known.
func (c *calling) store(ctx context.Context, out *callOutput, run *CallRun, as Answered) (Answered, error) {
	c.enter(StageStoring)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	as.Status, as.Header, as.Event = out.status, kept(out.sent), run.Event
	answer := c.ended(as, run)
	if answer.Failure == nil && !answer.Cancelled {
		answer.Failure = run.Failure
	}
	if answer.Failure == nil && !answer.Cancelled && (run.Fault != nil || out.status/100 != 2) {
		answer.Failure = FailureOf(c.body.buffer, run.Fault) // the document of an error is short
	}
	if answer.Failure != nil {
		answer.Failure = &providers.VideoFailure{
			Code: clip(answer.Failure.Code, codeLimit), Message: shorten(answer.Failure.Message),
			Billed: answer.Failure.Billed,
		}
	}
	for {
		err := c.write(ctx, out, &answer)
		if err == nil {
			break
		}
		if errors.Is(err, eventlog.ErrReplaced) { // by a later try, whose answer counts
			return Answered{}, again(record(err), 0)
		}
		c.Log.WarnContext(ctx, "answer of a call not stored, it is tried again", "task", c.in.TaskID, "error", err)
		if storage.Sleep(ctx, storeRetry) != nil {
			answer.Output, answer.Failure = nil, archiveFailed()
			return answer, nil
		}
	}
	c.markEnded(ctx, c.in.TaskID)
	return answer, nil
}

func (c *calling) write(ctx context.Context, out *callOutput, answer *Answered) error {
	if answer.Copy != nil {
		answer.Copy.Object = c.in.ticket()
		if err := c.Objects.PutJSON(ctx, answer.Copy.Object, answer.Copy); err != nil {
			return fmt.Errorf("archive the ticket: %w", err)
		}
	}
	kind := out.sent.Get("Content-Type")
	if c.events != nil {
		if c.events.Replaced(ctx) {
			return eventlog.ErrReplaced
		}
		if c.events.Large() {
			release, err := c.large(ctx)
			if err != nil {
				return err
			}
			defer release()
		}
		if err := c.record(ctx, answer, Output{ContentType: kind}); err != nil {
			return err
		}
		log, err := c.events.Close(ctx, answer.Failure == nil && !answer.Cancelled)
		if err != nil {
			return fmt.Errorf("end the log of events: %w", err)
		}
		answer.Events = log.Events
		answer.Output, err = c.streamed(ctx, log, kind)
		return err
	}
	output := Output{Object: c.in.output(strconv.Itoa(out.status), c.nth()), ContentType: kind}
	if err := c.record(ctx, answer, output); err != nil {
		return err
	}
	object, err := c.body.store(ctx, output.Object, kind)
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	output.Size, output.SHA256 = object.Size, object.SHA256
	answer.Output = &output
	return nil
}

// streamed returns the output of a stream whose events are stored: for a client that receives a JSON array, that array.
func (c *calling) streamed(ctx context.Context, log eventlog.Object, kind string) (*Output, error) {
	if !c.in.Call.Array {
		return &Output{Object: log.Key, ContentType: kind, Size: log.Size, SHA256: log.SHA256}, nil
	}
	kind = "application/json"
	events, err := c.Objects.Open(ctx, log.Key)
	if err != nil {
		return nil, fmt.Errorf("read the events: %w", err)
	}
	defer func() { _ = events.Close() }() // it was only read
	object, err := c.Objects.Put(ctx, c.in.output(strconv.Itoa(http.StatusOK), c.nth()), sse.NewArray(events), -1,
		archive.PutOptions{ContentType: kind})
	if err != nil {
		return nil, fmt.Errorf("write the answer: %w", err)
	}
	return &Output{Object: object.Key, ContentType: kind, Size: object.Size, SHA256: object.SHA256}, nil
}

// record writes the record of the answer before its output, so that no answer is stored without its usage and cost. The output has no
// object if it is the log of events. Once both are stored, the call is never sent again.
func (c *calling) record(ctx context.Context, answer *Answered, output Output) error {
	answer.Output = &output
	if err := c.Objects.PutJSON(ctx, c.in.answer(c.nth()), answer); err != nil {
		return fmt.Errorf("write the record of the answer: %w", err)
	}
	return nil
}

// kept returns the headers of an answer that are stored with it. They are in the workflow's result, so long ones are dropped.
func kept(header http.Header) http.Header {
	again := make(http.Header)
	for name, values := range header {
		if len(values) != 1 || len(values[0]) > keptLimit {
			continue
		}
		if strings.HasPrefix(name, "X-Relay-") || name == "Content-Disposition" || name == "X-Request-Id" {
			again[name] = values
		}
	}
	return again
}

// FailureOf returns the code and message of an error document of any format. fault is the gateway's own fault, nil for none.
func FailureOf(body []byte, fault *providers.Fault) *providers.VideoFailure {
	var answer struct {
		Error struct {
			Code    json.RawMessage `json:"code"`
			Type    string          `json:"type"`
			Status  string          `json:"status"`
			Message string          `json:"message"`
		} `json:"error"`
	}
	failure := &providers.VideoFailure{Code: "upstream_error", Message: "The upstream failed."}
	if fault != nil {
		failure.Message = fault.Message
	}
	if json.Unmarshal(body, &answer) != nil {
		return failure
	}
	var code string
	_ = json.Unmarshal(answer.Error.Code, &code) // some formats have a number there
	failure.Code = cmp.Or(code, answer.Error.Status, answer.Error.Type, failure.Code)
	failure.Message = cmp.Or(answer.Error.Message, failure.Message)
	return failure
}
