package providers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"
)

// VideoRequest is the canonical form of a video create in any format. It is in histories: no credentials, no media.
type VideoRequest struct {
	// Model is the public name; Target has the upstream model. Alias is the alias in the create, "" for none, for answers only.
	Model          string `json:"model"`
	Alias          string `json:"asked,omitempty"`
	Prompt         string `json:"prompt,omitempty"`
	NegativePrompt string `json:"negative_prompt,omitempty"`
	// Inputs are images, videos and audio, each with its role.
	Inputs []Media `json:"inputs,omitempty"`
	// Seconds is a decimal number as the caller wrote it, "" for the vendor's default.
	Seconds string `json:"seconds,omitempty"`
	// Size is the caller's text for the dimensions ("1280x720"), "" for none. Width and Height are in pixels, 0 if unknown.
	Size   string `json:"size,omitempty"`
	Width  int    `json:"width,omitempty"`
	Height int    `json:"height,omitempty"`
	// AspectRatio ("16:9") and Resolution ("720p", "4k") are in lower case, "" for none.
	AspectRatio string `json:"aspect_ratio,omitempty"`
	Resolution  string `json:"resolution,omitempty"`
	FPS         int    `json:"fps,omitempty"`
	// GenerateAudio turns sound on or off, nil for the vendor's default.
	GenerateAudio *bool `json:"generate_audio,omitempty"`
	// N is the number of videos; 0 means one.
	N    int    `json:"n,omitempty"`
	Seed *int64 `json:"seed,omitempty"`
	// User and ResponseFormat are stored with the task. No adapter sends them.
	User           string `json:"user,omitempty"`
	ResponseFormat string `json:"response_format,omitempty"`
	// Extra is a JSON object of the body fields that the contract does not name: the vendor's own parameters, sent unchanged.
	Extra json.RawMessage `json:"extra,omitempty"`
	// Metadata is the caller's metadata object. The task shows it, and its members are vendor parameters as well.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// WebhookURL receives the task's end, "" for the token's own URL. No adapter sends it.
	WebhookURL string `json:"webhook_url,omitempty"`
	// RemixOf is the task to vary, "" for none. Source is the job that made it, for a Remixer.
	RemixOf string  `json:"remix_of,omitempty"`
	Source  *Ticket `json:"source,omitempty"`
	// IdempotencyKey is the same for all tries of one attempt. Adapters send it if the upstream supports such a key.
	IdempotencyKey string `json:"idempotency_key,omitempty"`
}

// Named returns the name under which the client asked for the model.
func (r VideoRequest) Named() string { return cmp.Or(r.Alias, r.Model) }

// Parameters returns the vendor's own parameters: the members of Metadata and of Extra, which wins. The caller may change the map.
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

// Unwritable returns the fault of a request that cannot be written for an upstream. Nothing was sent.
func Unwritable(err error) *Fault {
	return &Fault{Kind: Invalid, Message: "The request cannot be written for the upstream.", Accepted: NotAccepted, Err: err}
}

// InputRole is the purpose of an input.
type InputRole string

// The roles of inputs.
const (
	FirstFrame  InputRole = "" // the image that the video begins with: the default role of an image
	LastFrame   InputRole = "last_frame"
	Reference   InputRole = "reference" // an image of a person, a thing or a style that the video shows
	SourceVideo InputRole = "video"     // the video to change
	ExtendVideo InputRole = "extend"    // the video to continue
	SourceAudio InputRole = "audio"
)

// Of returns the inputs of a role in order.
func (r VideoRequest) Of(role InputRole) []Media {
	var inputs []Media
	for _, input := range r.Inputs {
		if input.Role == role {
			inputs = append(inputs, input)
		}
	}
	return inputs
}

// Media is one input of a request: either the client's URL, which is passed on and never fetched, or an object of the archive. A
// create may name an object of another task with its Size and SHA256; the new task receives a copy.
type Media struct {
	Role        InputRole `json:"role,omitempty"`
	URL         string    `json:"url,omitempty"`
	Object      string    `json:"object,omitempty"`
	Name        string    `json:"name,omitempty"`
	ContentType string    `json:"content_type,omitempty"`
	Size        int64     `json:"size,omitempty"`
	SHA256      string    `json:"sha256,omitempty"`
	// From is the task whose video the input is, "" for none.
	From string `json:"from,omitempty"`
	// Data are the bytes of an upload before it is archived; nil afterwards.
	Data []byte `json:"-"`
	// Open reads the object's bytes from the start; the caller closes. Adapters may call it if Object is set.
	Open func(context.Context) (io.ReadCloser, error) `json:"-"`
}

// CopyTo writes the bytes of a media object. A *Fault means that they cannot be read now. Nothing was sent.
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

// Ticket is a vendor's handle of one job. Only the adapter that created it reads it. It contains no credential.
type Ticket struct {
	// Job is the vendor's id of the job, for humans.
	Job string `json:"job"`
	// Data is what else the adapter needs to find the job.
	Data json.RawMessage `json:"data,omitempty"`
	// ETA is how long the job takes from its submission, as the vendor estimates; 0 for none.
	ETA time.Duration `json:"eta,omitempty"`
}

// VideoState is the state of a vendor's job.
type VideoState string

const (
	// JobQueued means accepted, not started.
	JobQueued VideoState = "queued"
	// JobRunning means in progress. An unknown status of the vendor counts as running.
	JobRunning VideoState = "running"
	// JobDone means that every output can be opened.
	JobDone VideoState = "done"
	// JobFailed means that the job has ended without a video: failed, refused, canceled or expired at the vendor.
	JobFailed VideoState = "failed"
	// JobForgotten means that the job is unknown to the vendor. It has a Failure, in case the vendor is right.
	JobForgotten VideoState = "forgotten"
)

// VideoStatus is one answer about a job.
type VideoStatus struct {
	State VideoState `json:"state"`
	// Progress is the vendor's percentage, 0 to 100, or -1 for none.
	Progress int `json:"progress"`
	// VendorState is the vendor's own status.
	VendorState string `json:"word,omitempty"`
	// Outputs is how many videos can be opened; 0 until the job is done.
	Outputs int `json:"outputs,omitempty"`
	// ExpiresAt is when the vendor removes the outputs of a finished job; zero if unknown.
	ExpiresAt time.Time `json:"dies,omitzero"`
	// OpenData replaces Ticket.Data for Open, for a vendor that forgets a finished job before its outputs; nil for none. It has no credential.
	OpenData json.RawMessage `json:"found,omitempty"`
	// Seconds, Width and Height describe the video if the vendor reports them.
	Seconds string `json:"seconds,omitempty"`
	Width   int    `json:"width,omitempty"`
	Height  int    `json:"height,omitempty"`
	// Source is the length in seconds of the job's source videos, for a vendor that bills it; "" for none.
	Source string `json:"source,omitempty"`
	// Resolution is the vendor's text. Audio is "true", "false", or "" if unknown. Tokens are the vendor's count. Only done jobs have them.
	Resolution string      `json:"resolution,omitempty"`
	Audio      string      `json:"audio,omitempty"`
	Tokens     VideoTokens `json:"tokens,omitzero"`
	// Price is the vendor's charge for the job in its own unit ("25 credits"), "" if unknown.
	Price string `json:"price,omitempty"`
	// Took is how long a finished job took by the vendor's clock, 0 if unknown.
	Took time.Duration `json:"took,omitempty"`
	// Failure is the cause of a failed job; nil otherwise.
	Failure *VideoFailure `json:"failure,omitempty"`
}

// VideoTokens are the tokens of a job at a vendor that bills by tokens; zero if unknown.
type VideoTokens struct {
	Input  int64 `json:"input,omitempty"`
	Output int64 `json:"output,omitempty"`
}

// VideoFailure is why a job ended without a video. Both texts may be shown to the client.
type VideoFailure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Retryable: the vendor is the cause and does not bill failed jobs, so another channel or another try may succeed.
	Retryable bool `json:"retryable,omitempty"`
	// Billed: the vendor bills the job nevertheless.
	Billed bool `json:"billed,omitempty"`
}

// Video is one open output. The caller closes Body.
type Video struct {
	Body io.ReadCloser
	// Length is in bytes, -1 if unknown.
	Length int64
	// ContentType is detected from the first bytes: video/* or image/*.
	ContentType string
}

// VideoAdapter implements one vendor's jobs. It is stateless and safe for concurrent use. Errors are *Fault.
type VideoAdapter interface {
	// Submit starts a paid job once. Fault.Accepted reports whether the upstream may have accepted it.
	Submit(ctx context.Context, to Target, req VideoRequest) (Ticket, error)
	// Poll reads the status of a job. A failed job, or an unknown one, is a status and not an error. Poll may be repeated.
	Poll(ctx context.Context, to Target, ticket Ticket) (VideoStatus, error)
	// Open reads the output at index output, counted from 0, of a finished job. It renews an expired link.
	Open(ctx context.Context, to Target, ticket Ticket, output int) (Video, error)
}

// Pace bounds the interval between two polls of a job.
type Pace struct {
	// Least is the shortest interval that the vendor permits or recommends; 0 for none.
	Least time.Duration
	// Most is the longest interval after which the outputs of a job can still be read, with a margin; 0 if they are kept for long.
	Most time.Duration
}

// Paced is a VideoAdapter whose vendor bounds the interval between polls.
type Paced interface{ Pace() Pace }

// PaceOf returns the adapter's Pace, zero for none.
func PaceOf(adapter VideoAdapter) Pace {
	if paced, ok := adapter.(Paced); ok {
		return paced.Pace()
	}
	return Pace{}
}

// Canceler is a VideoAdapter whose vendor can stop a job. Canceling a job that has ended or is unknown is not an error.
type Canceler interface {
	Cancel(ctx context.Context, to Target, ticket Ticket) error
}

// Remixer is a VideoAdapter whose vendor can make a variation of a finished job. Remix is like Submit.
type Remixer interface {
	Remix(ctx context.Context, to Target, source Ticket, req VideoRequest) (Ticket, error)
}

// ErrNoLookup reports that the upstream cannot look up the outcome of a lost submit.
var ErrNoLookup = errors.New("the upstream has no look-up")

// Finder is a VideoAdapter whose vendor can look up the job of a submit whose answer was lost, by the request's IdempotencyKey. A *Fault of
// kind NotFound with NotAccepted means that the vendor certainly has no such job, ErrNoLookup that this upstream stores no such keys.
type Finder interface {
	Find(ctx context.Context, to Target, req VideoRequest) (Ticket, error)
}

// The pictures that a vendor may make of a finished video, by the contract's names.
const (
	Thumbnail   = "thumbnail"
	Spritesheet = "spritesheet"
)

// VariantNames lists all of them.
func VariantNames() []string { return []string{Thumbnail, Spritesheet} }

// Variants is a VideoAdapter whose vendor makes pictures of a finished video. OpenVariant reads one of VariantNames of the output
// at an index. A *Fault of kind NotFound means that there is none. An upstream without variants may return something other
// than a picture; its ContentType shows it.
type Variants interface {
	OpenVariant(ctx context.Context, to Target, ticket Ticket, output int, variant string) (Video, error)
}
