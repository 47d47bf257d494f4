package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"modelrelay/activities"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/workflows/tasks"
)

// Response finds a token's Response task; false if there is none.
func (s *Service) Response(ctx context.Context, tokenID, id string) (tasks.Task, bool, error) {
	if !tasks.IsTaskID(id) || !strings.HasPrefix(id, activities.ResponseIDs) {
		return tasks.Task{}, false, nil
	}
	found, err := s.Tasks.Find(ctx, id, tokenID)
	if fault, ok := errors.AsType[*providers.Fault](err); ok && fault.Kind == providers.NotFound {
		return tasks.Task{}, false, nil
	}
	return found, err == nil && !found.Expired(), err
}

// Delete deletes a task of a token.
func (s *Service) Delete(ctx context.Context, tokenID, id string) error {
	err := s.Tasks.Delete(ctx, id, tokenID)
	if err == nil && s.Deleted != nil && strings.HasPrefix(id, activities.ResponseIDs) {
		s.Deleted(ctx, tokenID, id)
	}
	return err
}

// Request returns the body of a call's create.
func (s *Service) Request(ctx context.Context, of tasks.Task) ([]byte, error) {
	return s.read(ctx, of, of.Body, io.ReadAll)
}

// Items returns the items from which a call continues.
func (s *Service) Items(ctx context.Context, of tasks.Task) ([]byte, error) {
	return s.read(ctx, of, of.Items, io.ReadAll)
}

// Output returns the result of read for the archived answer of a call.
func (s *Service) Output(ctx context.Context, of tasks.Task, read func(io.Reader) ([]byte, error)) ([]byte, error) {
	if len(of.Outputs) == 0 {
		return nil, noResult(of)
	}
	return s.read(ctx, of, of.Outputs[0].Object, read)
}

func (s *Service) read(ctx context.Context, of tasks.Task, key string, read func(io.Reader) ([]byte, error)) ([]byte, error) {
	object, err := s.Archive.Open(ctx, key)
	if err != nil {
		return nil, Object{Gone: noResult(of)}.fault(err)
	}
	defer func() { _ = object.Close() }() // only read
	if err := s.hold(ctx, object.Object().Size); err != nil {
		return nil, err
	}
	content, err := read(object)
	if err != nil {
		return nil, fmt.Errorf("read %s of %s: %w", key, of.ID, err)
	}
	return content, nil
}

// BytesPerRead is how many bytes of an object that a request reads into memory count as one of the token's reads.
const BytesPerRead = 64 << 10

// hold counts an object that a request reads into memory: as reads of its token, and in the memory of bodies until the request ends.
func (s *Service) hold(ctx context.Context, size int64) error {
	x := edge.Of(ctx)
	if reads := int(size / BytesPerRead); reads > 0 {
		if err := x.TakeReads(reads); err != nil {
			return err
		}
	}
	return x.Hold(int(size))
}

func noResult(of tasks.Task) *providers.Fault {
	return providers.Faultf(providers.NotFound, "The result of %s does not exist.", of.ID)
}

// Latest returns the expiry of a call; before the call's end, the latest possible one.
func (s *Service) Latest(of tasks.Task) time.Time {
	if !of.ExpiresAt.IsZero() {
		return of.ExpiresAt
	}
	return of.CreatedAt.Add(s.CallTTL)
}

// IsCall reports whether an id has the form of a call's id.
func (s *Service) IsCall(id string) bool {
	return tasks.IsTaskID(id) && activities.KindOf(id) == activities.KindCall
}

// Wait returns a task at the next change of its status, or its state after the wait.
func (s *Service) Wait(ctx context.Context, of tasks.Task, wait time.Duration) (tasks.Task, error) {
	return s.reader.await(ctx, of, wait, func(now tasks.Task) bool { return now.State != of.State })
}

// AwaitEnd returns a call after its end, or its state after a second.
func (s *Service) AwaitEnd(ctx context.Context, of tasks.Task) (tasks.Task, error) {
	return s.reader.await(ctx, of, endWait, tasks.Task.Ended)
}

// Call finds a call of a token for which is returns true; any other task is NotFound.
func (s *Service) Call(ctx context.Context, tokenID, id string, is func(tasks.Task) bool) (tasks.Task, error) {
	found, err := s.Tasks.Find(ctx, id, tokenID)
	if err == nil && (found.Kind() != activities.KindCall || !is(found) || found.Expired()) {
		err = providers.Faultf(providers.NotFound, "No task %q.", id)
	}
	return found, err
}

// MadeBy returns the upstream's id of a call that its upstream stores, with the channel and key; zero for none.
func MadeBy(of tasks.Task) providers.Created {
	if of.Call == nil || of.Call.Copy == nil {
		return providers.Created{}
	}
	return providers.Created{ID: of.Call.Copy.ID, By: providers.KeyRef{Channel: of.Call.Copy.Channel, Fingerprint: of.Call.Copy.Key}}
}
