// Package videos has the task operations of all video formats: Sora-compatible, generic, Jimeng and Gemini. Each format parses its bodies
// into one canonical request and renders tasks in its own shape. The create, the event stream and the content are shared.
//
// Wire structs have the names of their schemas in the OpenAPI document. The package must not know how a task is created or where it is
// stored.
package videos

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/activities"
	"modelrelay/api/calls"
	"modelrelay/api/edge"
	apitasks "modelrelay/api/tasks"
	"modelrelay/providers/router"
)

// Links makes addresses of archive objects that require no token.
type Links interface {
	// Presign returns an address that works for ttl. It does not access the archive.
	Presign(ctx context.Context, key string, ttl time.Duration) (string, error)
}

// Options configure a Service. The caller owns all parts.
type Options struct {
	Tasks   apitasks.Tasks
	Archive apitasks.Archive
	// Links makes the addresses of finished videos; nil: clients read videos through this server with their token.
	Links  Links
	Router *router.Router
	// Calls charges the creates and has the forbidden parameters of groups.
	Calls *calls.Calls
	// DefaultModel is the model of creates without one; "" refuses them.
	DefaultModel string
}

// Service has the operations on video tasks of all formats. It is safe for concurrent use.
type Service struct {
	tasks   apitasks.Tasks
	archive apitasks.Archive
	links   Links
	edge    *edge.Edge
	checks  fieldChecks
	creator *creator
	reader  *apitasks.Reader
}

// New returns a Service for the requests of an edge.
func New(e *edge.Edge, o Options) *Service {
	checks := newFieldChecks()
	o.Tasks = apitasks.Only(o.Tasks, activities.KindVideo)
	return &Service{
		tasks: o.Tasks, archive: o.Archive, links: o.Links, edge: e, checks: checks,
		creator: &creator{tasks: o.Tasks, router: o.Router, calls: o.Calls, checks: checks, defaultModel: o.DefaultModel},
		reader:  apitasks.NewReader(e, o.Tasks),
	}
}

// Watchers returns the number of open event streams.
func (s *Service) Watchers() int64 { return s.reader.Open.Load() }

// SetEventsEvery replaces the longest silence of event streams, 15 seconds. It must be called before the first request.
func (s *Service) SetEventsEvery(d time.Duration) { s.reader.Every = d }

// Add adds the operations to the groups of their formats: the Sora-compatible and the generic one have OpenAI's faults.
func (s *Service) Add(openAI, vendorC *edge.Group) {
	s.addSora(openAI)
	s.addGeneric(openAI)
	s.addVendorC(vendorC)
}

// creates is the access of an operation that creates a task, and reads that of an operation on one.
func creates() edge.Access {
	return edge.Access{Permission: edge.VideoPermission, Meter: edge.MeterCalls}
}

func reads() edge.Access {
	return edge.Access{Permission: edge.VideoPermission, Meter: edge.MeterReads}
}

// Descriptions that all formats share.
const (
	createWords = "A video requires a prompt or an image. A field of another video format has its meaning there. Fields that are not " +
		"listed here and members of metadata reach the vendor as its own parameters. Metadata must not contradict the model, the " +
		"length and the number of videos. A task can be read in any of the video formats."
	cancelWords = "Waits up to two seconds for the effect. A task that has ended does not change."
)

func idempotencyParameter() *huma.Param {
	return &huma.Param{
		Name: "Idempotency-Key", In: "header", Description: "A repeated create with the same key returns the first task and creates no second",
		Schema: &huma.Schema{Type: huma.TypeString, MinLength: new(1), MaxLength: new(apitasks.MaxIdempotencyKey)},
	}
}
