// Package videos is the task routes of all video formats: the Sora-compatible one, the generic one, vendor C's and format B's. Each reads
// its bodies into one canonical request and shows tasks in its own shape; what they share, from the create to the event
// stream and the content, stands once.
//
// Wire structs are named as the OpenAPI document names their schemas. It must not know how a task is made or where it is
// kept.
package videos

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/calls"
	"modelrelay/api/edge"
	"modelrelay/storage/archive"
	"modelrelay/workflows/tasks"
)

// Tasks starts and reads video tasks. Errors are *providers.Fault; a task of another token is NotFound.
type Tasks interface {
	Create(ctx context.Context, create tasks.Create) (tasks.Task, error)
	Find(ctx context.Context, id, tokenID string) (tasks.Task, error)
	// Repeated finds the task of an equal create, by its key or as an SDK's repeat, and makes none; else it is NotFound.
	Repeated(ctx context.Context, create tasks.Create) (tasks.Task, error)
	// List reads a page; an After that the token has no task for is Invalid.
	List(ctx context.Context, query tasks.ListQuery) (tasks.Page, error)
	// Cancel returns the task as it is after two seconds at most.
	Cancel(ctx context.Context, id, tokenID string) (tasks.Task, error)
	// Delete returns when the task is found no more.
	Delete(ctx context.Context, id, tokenID string) error
	// Watch returns the task at the first change of state, progress or queue position after last, and at once where last
	// has ended. Its error is ctx's, or NotFound when the task was removed.
	Watch(ctx context.Context, last tasks.Task) (tasks.Task, error)
}

// Archive reads the outputs of tasks.
type Archive interface {
	// Open reads an object from any position; the caller closes. The error is storage.ErrNotFound for an object that
	// does not exist and storage.ErrUnavailable when nobody can tell.
	Open(ctx context.Context, key string) (*archive.Reader, error)
}

// Links makes addresses at which objects of the archive can be read without a token.
type Links interface {
	// Presign returns an address that works for the time given. It asks nobody.
	Presign(ctx context.Context, key string, ttl time.Duration) (string, error)
}

// Options are what the operations work with. They stay the caller's.
type Options struct {
	Tasks   Tasks
	Archive Archive
	// Links, where it is set, makes the addresses of finished videos, which need no token then; nil has them read through
	// this server.
	Links  Links
	Router calls.Router
	// Calls charges the creates, and knows what they may not ask for.
	Calls *calls.Calls
	// DefaultModel serves creates that name no model; "" refuses them.
	DefaultModel string
}

// Service is the operations on video tasks: each format's, over what all of them do with a task. It is safe for concurrent
// use.
type Service struct {
	tasks     Tasks
	checks    fieldChecks
	creator   *creator
	reader    reader
	events    *events
	content   content
	addresses addresses
}

// New makes the operations on the tasks of an edge's requests.
func New(e *edge.Edge, o Options) *Service {
	checks := newFieldChecks()
	return &Service{
		tasks: o.Tasks, checks: checks,
		creator:   &creator{tasks: o.Tasks, router: o.Router, calls: o.Calls, checks: checks, defaultModel: o.DefaultModel},
		reader:    reader{o.Tasks, e},
		events:    &events{tasks: o.Tasks, edge: e, every: eventsEvery},
		content:   content{o.Tasks, o.Archive},
		addresses: addresses{o.Links, e},
	}
}

// Watchers is how many event streams are open.
func (s *Service) Watchers() int64 { return s.events.open.Load() }

// SetEventsEvery sets the longest silence of event streams, in place of 15 seconds. Before the first request.
func (s *Service) SetEventsEvery(d time.Duration) { s.events.every = d }

// Add adds the operations to the groups of their formats: the Sora-compatible and the generic one have OpenAI's faults. Those of
// format B are AddGemini's.
func (s *Service) Add(openAI, vendorC *edge.Group) {
	sora{s}.add(openAI)
	generic{s}.add(openAI)
	s.addVendorC(vendorC)
}

// creates is the access of an operation that makes a task, and reads that of one about a task.
func creates() edge.Access {
	return edge.Access{Permission: edge.VideoPermission, Meter: edge.MeterCalls}
}

func reads() edge.Access {
	return edge.Access{Permission: edge.VideoPermission, Meter: edge.MeterReads}
}

// Words of the document that all formats share.
const (
	createWords = "A video needs a prompt or an image. A field of another of the video formats means what it means there. Other " +
		"fields that are not listed here reach the vendor as its own parameters, and so do those in metadata, which may say " +
		"nothing else of the model, the length and the number of videos. A task can be read in any of the video formats."
	cancelWords = "Waits up to two seconds for the effect. A task that has ended is answered unchanged."
)

// idempotencyParameter declares the header of creates.
func idempotencyParameter() *huma.Param {
	return &huma.Param{
		Name: "Idempotency-Key", In: "header", Description: "A create that is repeated with its key returns the first one's task and makes no second",
		Schema: &huma.Schema{Type: huma.TypeString, MinLength: new(1), MaxLength: new(maxIdempotencyKey)},
	}
}
