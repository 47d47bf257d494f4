package providers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"
)

// VideoRequest is the canonical form of a video create, whatever format it came in. It stands in workflow histories,
// so it holds neither credentials nor media bytes.
type VideoRequest struct {
	// Model is the public name; the upstream's is in Target. Asked is the name under which the client asked for it where that is
	// an alias: answers show it, no adapter sends it.
	Model          string `json:"model"`
	Asked          string `json:"asked,omitempty"`
	Prompt         string `json:"prompt,omitempty"`
	NegativePrompt string `json:"negative_prompt,omitempty"`
	// Inputs are images, videos and sounds, each with its role.
	Inputs []Media `json:"inputs,omitempty"`
	// Seconds is a decimal number as the caller wrote it, "" for the vendor's default.
	Seconds string `json:"seconds,omitempty"`
	// Size is the caller's own word for the dimensions ("1280x720"), "" where it gave none. Width and Height are in
	// pixels where they are known, else 0.
	Size   string `json:"size,omitempty"`
	Width  int    `json:"width,omitempty"`
	Height int    `json:"height,omitempty"`
	// AspectRatio ("16:9") and Resolution ("720p", "4k") are words in lower case, "" where the caller gave none.
	AspectRatio string `json:"aspect_ratio,omitempty"`
	Resolution  string `json:"resolution,omitempty"`
	FPS         int    `json:"fps,omitempty"`
	// GenerateAudio turns sound on or off, nil for the vendor's default.
	GenerateAudio *bool `json:"generate_audio,omitempty"`
	// N is the number of videos; 0 means one.
	N    int    `json:"n,omitempty"`
	Seed *int64 `json:"seed,omitempty"`
	// User and ResponseFormat are kept with the task. No adapter sends them.
	User           string `json:"user,omitempty"`
	ResponseFormat string `json:"response_format,omitempty"`
	// Extra is a JSON object of the body fields the contract does not name: the vendor's own parameters, sent as they are.
	Extra json.RawMessage `json:"extra,omitempty"`
	// Metadata is the caller's metadata object. It is echoed in the task, and its members are vendor parameters as well.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// WebhookURL is where the task's end is told, "" for the token's own. No adapter sends it.
	WebhookURL string `json:"webhook_url,omitempty"`
	// RemixOf is the task to make a variation of, "" for none; Source is the job that made it, for a Remixer.
	RemixOf string  `json:"remix_of,omitempty"`
	Source  *Ticket `json:"source,omitempty"`
	// IdempotencyKey is stable over all tries of one attempt. Adapters whose upstream honours such a key send it.
	IdempotencyKey string `json:"idempotency_key,omitempty"`
}

// Named is the name under which the client asked for the model.
func (r VideoRequest) Named() string { return cmp.Or(r.Asked, r.Model) }

// Parameters are the members of Metadata and Extra by name, Extra's where both have one: what the caller gave the vendor
// beside the contract's fields. The map is the caller's to change and never nil.
func (r VideoRequest) Parameters() (map[string]json.RawMessage, error) {
	fields := make(map[string]json.RawMessage)
	for _, object := range []json.RawMessage{r.Metadata, r.Extra} {
		if len(object) == 0 {
			continue
		}
		if err := json.Unmarshal(object, &fields); err != nil {
			return nil, Unwritable(err)
		}
		if fields == nil { // null
			fields = make(map[string]json.RawMessage)
		}
	}
	return fields, nil
}

// Unwritable is the fault of a request that cannot be written for an upstream. Nothing was sent.
func Unwritable(err error) *Fault {
	return &Fault{Kind: Invalid, Message: "The request cannot be written for the upstream.", Accepted: NotAccepted, Err: err}
}

// InputRole is what an input is for.
type InputRole string

// The roles of inputs.
const (
	FirstFrame  InputRole = "" // the image that the video begins with: what an image is for where nobody says
	LastFrame   InputRole = "last_frame"
	Reference   InputRole = "reference" // an image of a person, a thing or a style that the video shows
	SourceVideo InputRole = "video"     // the video to change
	ExtendVideo InputRole = "extend"    // the video to go on from
	SourceAudio InputRole = "audio"
)

// Of returns the inputs of a role, in their order.
func (r VideoRequest) Of(role InputRole) []Media {
	var inputs []Media
	for _, input := range r.Inputs {
		if input.Role == role {
			inputs = append(inputs, input)
		}
	}
	return inputs
}

// Media is one input of a request: either the client's own URL, passed on and never fetched, or an object of the archive. A
// create may name an object of another task with its Size and SHA256, which the new task gets a copy of.
type Media struct {
	Role        InputRole `json:"role,omitempty"`
	URL         string    `json:"url,omitempty"`
	Object      string    `json:"object,omitempty"`
	Name        string    `json:"name,omitempty"`
	ContentType string    `json:"content_type,omitempty"`
	Size        int64     `json:"size,omitempty"`
	SHA256      string    `json:"sha256,omitempty"`
	// From names the task whose video the input is, "" for none. What it names is what the bytes are.
	From string `json:"from,omitempty"`
	// Data are the bytes of an upload that is not in the archive yet; nil afterwards.
	Data []byte `json:"-"`
	// Open reads the object's bytes from the start; the caller closes. Set for adapters where Object is set.
	Open func(context.Context) (io.ReadCloser, error) `json:"-"`
}

// CopyTo writes the bytes of a media object. A *Fault says that they cannot be read now: nothing was sent yet.
func (m Media) CopyTo(ctx context.Context, to io.Writer) error {
	away := func(err error) *Fault {
		return &Fault{Kind: Overloaded, Message: "The task's input cannot be read from the archive now.", Accepted: NotAccepted, Err: err}
	}
	file, err := m.Open(ctx)
	if err != nil {
		return away(err)
	}
	defer file.Close()
	if _, err := io.Copy(to, file); err != nil {
		return away(err)
	}
	return nil
}

// Ticket is a vendor's handle on one job, opaque to everyone but the adapter that made it. It holds no credential.
type Ticket struct {
	// Job is the vendor's own id, for people.
	Job string `json:"job"`
	// Data is whatever else the adapter needs to find the job again.
	Data json.RawMessage `json:"data,omitempty"`
	// ETA is how long the vendor says the job will take from its submission, 0 when it does not say.
	ETA time.Duration `json:"eta,omitempty"`
}

// VideoState is where a vendor's job stands.
type VideoState string

const (
	// JobQueued is accepted, not started.
	JobQueued VideoState = "queued"
	// JobRunning is being made. An unknown status word counts as running.
	JobRunning VideoState = "running"
	// JobDone means that every output can be opened.
	JobDone VideoState = "done"
	// JobFailed has ended without a video: failed, refused, cancelled or expired at the vendor.
	JobFailed VideoState = "failed"
	// JobForgotten means that the vendor knows no such job. It carries a Failure, for the case that the vendor means it.
	JobForgotten VideoState = "forgotten"
)

// VideoStatus is one answer about a job.
type VideoStatus struct {
	State VideoState `json:"state"`
	// Progress is the vendor's percentage, 0 to 100, or -1 where it gives none.
	Progress int `json:"progress"`
	// Word is the vendor's own status word.
	Word string `json:"word,omitempty"`
	// Outputs is how many videos can be opened; 0 while not done.
	Outputs int `json:"outputs,omitempty"`
	// Dies is when the vendor lets the outputs of a job go that is done; zero where it does not say.
	Dies time.Time `json:"dies,omitzero"`
	// Found takes the place of Ticket.Data for Open, of a vendor that lets its answer about a job that is done go before the outputs;
	// nil where the ticket says enough. It holds no credential.
	Found json.RawMessage `json:"found,omitempty"`
	// Seconds, Width and Height describe the video where the vendor does.
	Seconds string `json:"seconds,omitempty"`
	Width   int    `json:"width,omitempty"`
	Height  int    `json:"height,omitempty"`
	// Source is the length in seconds of the videos that the job was made from, of a vendor that bills it as well; "" for none.
	Source string `json:"source,omitempty"`
	// Resolution is the vendor's word for the size, and Audio whether the video has sound: "true", "false", or "" where it does not
	// say. Tokens are what it counts. All are of a job that is done.
	Resolution string      `json:"resolution,omitempty"`
	Audio      string      `json:"audio,omitempty"`
	Tokens     VideoTokens `json:"tokens,omitzero"`
	// Price is what the vendor charges for the job, in its own unit ("25 credits"), "" where it does not say.
	Price string `json:"price,omitempty"`
	// Took is how long a job that is done took by the vendor's own clock, 0 where it does not say.
	Took time.Duration `json:"took,omitempty"`
	// Failure says why a job failed; nil otherwise.
	Failure *VideoFailure `json:"failure,omitempty"`
}

// VideoTokens are what a vendor that bills by tokens counts for a job; zero where it does not say.
type VideoTokens struct {
	Input  int64 `json:"input,omitempty"`
	Output int64 `json:"output,omitempty"`
}

// VideoFailure is why a job ended without a video, in words that may be shown to the client.
type VideoFailure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Retryable: the vendor says that the failure is its own, and a failed job costs nothing there, so that another channel, or
	// another try, may succeed.
	Retryable bool `json:"retryable,omitempty"`
	// Billed: the vendor charges for the job all the same.
	Billed bool `json:"billed,omitempty"`
}

// Video is one output being read. The caller closes Body.
type Video struct {
	Body io.ReadCloser
	// Length is in bytes, -1 where the upstream does not say.
	Length int64
	// ContentType is told by the first bytes: video/* or image/*.
	ContentType string
}

// VideoAdapter drives one vendor's jobs. It is stateless and safe for concurrent use. Errors are *Fault.
type VideoAdapter interface {
	// Submit starts a paid job, once. Fault.Accepted says whether the upstream surely did not take it.
	Submit(ctx context.Context, to Target, req VideoRequest) (Ticket, error)
	// Poll asks for a job. A failed job, and one the vendor no longer knows, is a status and not an error. It may be
	// called any number of times.
	Poll(ctx context.Context, to Target, ticket Ticket) (VideoStatus, error)
	// Open reads output number `output`, counted from 0, of a job that is done. It renews a link that ran out.
	Open(ctx context.Context, to Target, ticket Ticket, output int) (Video, error)
}

// Pace is how often a vendor may be asked about a job, and how often it must be.
type Pace struct {
	// Least is the shortest wait between two looks: the vendor's rule, or what it recommends. 0 where it says nothing.
	Least time.Duration
	// Most is the longest wait after which what a job has made can still be read, with time to spare; 0 where it lives for long.
	Most time.Duration
}

// Paced is a VideoAdapter whose vendor says how often it is to be asked about a job.
type Paced interface{ Pace() Pace }

// PaceOf is an adapter's, and zero where its vendor says nothing.
func PaceOf(adapter VideoAdapter) Pace {
	if paced, ok := adapter.(Paced); ok {
		return paced.Pace()
	}
	return Pace{}
}

// Canceler is a VideoAdapter whose vendor can stop a job. Cancelling a job that has ended or is unknown is no error.
type Canceler interface {
	Cancel(ctx context.Context, to Target, ticket Ticket) error
}

// Remixer is a VideoAdapter whose vendor can make a variation of a finished job. Remix is to req.Source what Submit is
// to nothing: it starts a paid job, once, and its faults say the same.
type Remixer interface {
	Remix(ctx context.Context, to Target, source Ticket, req VideoRequest) (Ticket, error)
}

// ErrNoLookup says that an upstream cannot be asked what became of a lost submit, and never can: one look is enough.
var ErrNoLookup = errors.New("the upstream has no look-up")

// Finder is a VideoAdapter whose vendor can tell what became of a submit whose answer was lost: it looks the job up by
// the request's IdempotencyKey. A *Fault of kind NotFound with NotAccepted means the vendor surely has no such job; one that wraps
// ErrNoLookup, that this upstream keeps no such keys.
type Finder interface {
	Find(ctx context.Context, to Target, req VideoRequest) (Ticket, error)
}

// Pictures of a finished video that a vendor may make beside it, by the contract's names.
const (
	Thumbnail   = "thumbnail"
	Spritesheet = "spritesheet"
)

// VariantNames are all of them.
func VariantNames() []string { return []string{Thumbnail, Spritesheet} }

// Variants is a VideoAdapter whose vendor makes pictures of a finished video. OpenVariant reads one of output number
// `output`, whose name is one of VariantNames; a *Fault of kind NotFound says that there is none. What comes may be
// something else than a picture, where an upstream knows no variants: its ContentType tells.
type Variants interface {
	OpenVariant(ctx context.Context, to Target, ticket Ticket, output int, variant string) (Video, error)
}
