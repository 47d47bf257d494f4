package activities

import (
	"context"
	"fmt"
	"io"

	"modelrelay/providers"
	"modelrelay/providers/sse"
)

// gathered is an upstream's answer whose reader has each event, or the document, in memory as a whole. A large one is stored in kept until
// it is complete. Then the call takes a place in the worker, until the reader reads the next bytes. So no call has a place while its
// upstream works.
type gathered struct {
	*calling

	from io.ReadCloser
	ctx  context.Context //nolint:containedctx // it lives within one answer
	// most bounds an event or the document, in bytes. events: it is an event.
	most   int
	events bool
	lines  sse.Lines
	open   int // received bytes of the event or document

	kept    answerBody
	again   *answerReader // of kept; nil: it is empty or incomplete
	release func()        // of the place; nil: there is none
	err     error         // of from, after the bytes of kept
}

// gather implements providers.Call.Gather.
func (c *calling) gather(ctx context.Context, from io.ReadCloser, document int) io.ReadCloser {
	g := &gathered{calling: c, from: from, ctx: ctx, most: document, kept: c.newBody("large")}
	if document == 0 {
		g.most, g.events = sse.MaxEvent, true
	}
	return g
}

// Read implements io.Reader.
func (g *gathered) Read(p []byte) (n int, err error) {
	if g.again != nil {
		err = patiently(g.ctx, func(context.Context) (err error) {
			n, err = g.again.Read(p)
			return err
		})
		if n > 0 || err != io.EOF { //nolint:errorlint // io.Reader's own contract
			return n, unstored(err)
		}
		if g.err != nil {
			return 0, g.err
		}
		g.leave()
	}
	if g.open < LargeEvent || len(p) == 0 {
		n, err = g.from.Read(p[:min(len(p), LargeEvent-min(g.open, LargeEvent))])
		g.saw(p[:n])
		return n, err
	}
	for ended := false; !ended && g.open <= g.most && g.err == nil; {
		n, g.err = g.from.Read(p)
		ended = g.saw(p[:n])
		if err := g.kept.write(g.ctx, p[:n]); err != nil {
			return 0, unstored(err)
		}
	}
	if g.release, err = g.large(g.ctx); err != nil {
		return 0, err
	}
	g.again = g.kept.read(g.ctx)
	return g.Read(p)
}

// unstored returns the fault of an answer that the archive does not hold, which is not the upstream's; nil for no error.
func unstored(err error) error {
	if err == nil {
		return nil
	}
	return &providers.Fault{Kind: providers.Internal, Message: archiveFailed().Message, Err: fmt.Errorf("%w: %w", errUnstored, err)}
}

// saw parses the events in p, and reports whether one ends in it.
func (g *gathered) saw(p []byte) (ended bool) {
	if !g.events {
		g.open += len(p)
		return false
	}
	for len(p) > 0 {
		part, n := g.lines.Next(p)
		p = p[n:]
		if g.open += n; part.Kind == sse.Blank {
			g.open, ended = 0, true
		}
	}
	return ended
}

// leave empties kept and releases the place.
func (g *gathered) leave() {
	if g.again != nil {
		_ = g.again.Close() // it was only read
		g.again = nil
	}
	g.kept.reset(g.ctx)
	if g.release != nil {
		g.release()
		g.release = nil
	}
}

// Close implements io.Closer.
func (g *gathered) Close() error {
	g.leave()
	return g.from.Close()
}
