package taskindex_test

import (
	"context"
	"testing"
	"time"

	"modelrelay/storage/storagetest"
	"modelrelay/storage/taskindex"
	"modelrelay/storage/testwait"
)

func TestChanges(t *testing.T) {
	t.Parallel()
	server := storagetest.NewServer(t)
	client := server.Client(t)
	changes := taskindex.NewChanges(client)
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan struct{})
	heard := make(chan taskindex.Change, 1000)
	go func() {
		defer close(ended)
		changes.Follow(ctx, ready, func(change taskindex.Change) { heard <- change })
	}()
	<-ready
	for _, want := range []taskindex.Change{
		{TaskID: "t1"},
		{TaskID: "t2", Report: taskindex.Ended},
		{TaskID: "t3", Report: taskindex.Cancelled},
		{TaskID: "t4", Report: taskindex.Asked},
		{TaskID: "t5", Report: taskindex.Sending},
	} {
		if err := changes.Publish(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		if got := <-heard; got != want {
			t.Errorf("received %+v, want %+v", got, want)
		}
	}

	server.Leave()
	server.Return()
	testwait.Eventually(t, "hints after redis answers again", storagetest.Patience, func() bool {
		_ = changes.Publish(t.Context(), taskindex.Change{TaskID: "t3"})
		select {
		case got := <-heard:
			return got.TaskID == "t3"
		default:
			return false
		}
	})
	cancel()
	select {
	case <-ended:
	case <-time.After(storagetest.Patience):
		t.Error("it follows on after its context ended")
	}
}
