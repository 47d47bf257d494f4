package providertest

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/http"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// VideoStep is the purpose of a VideoAdapter's request.
type VideoStep string

// The steps of a job. An adapter need not have all of them: a vendor with links to its results has no Content.
const (
	VideoSubmit  VideoStep = "submit"
	VideoPoll    VideoStep = "poll"
	VideoContent VideoStep = "content"
	// VideoLink requests the link to a result, if the answer about the job does not contain it.
	VideoLink VideoStep = "link"
	// VideoUpload uploads an image before a submit that accepts none. upload.http is its answer.
	VideoUpload VideoStep = "upload"
	// VideoCancel is a Canceler's request.
	VideoCancel VideoStep = "cancel"
	// VideoRemix is a Remixer's request, with the answer of a submit.
	VideoRemix VideoStep = "remix"
	// VideoFind is a Finder's request other than a repeated submit.
	VideoFind VideoStep = "find"
)

// VideoSubject is the VideoAdapter under test with the wire of its vendor.
//
// Answers has the vendor's answers. Each is an HTTP response in a separate file, as bytes on the wire: submitted.http, queued.http,
// running.http, done.http, failed.http, forgotten.http, unknown_word.http and no_status.http (a job that is still running), refused.http (a
// fault of the request), key_refused.http and limited.http. A vendor with links has linked.http (a done job with its result at {{link}}).
// If all its results have links, done.http also contains {{link}}, which is then /result.mp4 at the upstream itself; for a vendor with
// VideoLink, link.http contains it. A Canceler has cancelled.http, and a Finder with a request other than its submit has find.http. The
// header Source in each, which is not sent, is the source of its shape. {{words}} in refused.http, key_refused.http and limited.http is the
// vendor's reason.
type VideoSubject struct {
	New func(*http.Client) providers.VideoAdapter
	// Channel completes the channel: the vendor and the vendor's own fields. The suite sets name, base URL and keys.
	Channel providers.Channel
	// Model is the upstream's name of the model; "" means "up".
	Model string
	// Key is the credential in the vendor's form, with %s for the suite's secret; "" means the secret itself.
	Key     string
	Answers fs.FS
	// Step returns the step of a request, "" for any other. It may read the body.
	Step func(*http.Request) VideoStep
	// Authorized reports whether the request has the key as the vendor requires it.
	Authorized func(req *http.Request, key providers.Secret) bool
	// Job is the id in submitted.http, Failure the failure in failed.http.
	Job     string
	Failure providers.VideoFailure
	// IdempotencyKey reads the request's idempotency key from a submit; nil if the vendor accepts none.
	IdempotencyKey func(*http.Request) string
	// Upload reads the only uploaded image of a submit; nil if the vendor accepts none.
	Upload func(*http.Request) (Upload, error)
	// RemixPrompt reads the prompt of a remix; nil: it is the body's "prompt".
	RemixPrompt func(*http.Request) (string, error)
	VideoTraits
}

// VideoTraits are the differences between the vendor's wire and that of others.
type VideoTraits struct {
	// NoQueue: the vendor does not distinguish a queued job from a running one, so there is no queued.http.
	NoQueue bool
	// BareUploads: the vendor accepts only the bytes of an upload, without name and type.
	BareUploads bool
	// NoLinks: the vendor accepts images only as bytes, so a client's link is refused.
	NoLinks bool
	// LooksUp: a Finder looks up a lost submit with a VideoFind and never repeats the submit.
	LooksUp bool
	// CancelReads is the name of the answer about a job that a Canceler reads before it stops the job, such as "queued"; "" if it reads
	// none.
	CancelReads string
	// Lists: the answer about a job is a list of jobs. A job that is not in the list is forgotten.
	Lists bool
}

// Upload is an input image that the upstream received.
type Upload struct {
	Name, ContentType string
	Data              []byte
}

// TestVideo runs the suite.
func TestVideo(t *testing.T, subject VideoSubject) {
	t.Helper()
	s := videoSuite{subject: subject}
	submits, polls, opens, powers := submitChecks{s}, pollChecks{s}, openChecks{s}, powerChecks{s}
	t.Run("lifecycle", s.lifecycle)
	t.Run("submit refused", submits.refused)
	t.Run("submit with a refused key", submits.keyRefused)
	t.Run("submit limited", submits.limited)
	t.Run("submit fails", submits.fails)
	t.Run("submit meets garbage", submits.garbage)
	t.Run("submit meets oddities", submits.odd)
	t.Run("poll meets oddities", polls.odd)
	t.Run("huge errors", s.hugeErrors)
	t.Run("redirected", s.redirected)
	t.Run("long answers", s.longAnswers)
	t.Run("submit without a server", submits.refusedDial)
	t.Run("submit alone", submits.alone)
	t.Run("submit is cut off", submits.cut)
	t.Run("submit over HTTP 2 is cut off", submits.cutHTTP2)
	t.Run("submit answer is cut off", submits.answerCut)
	t.Run("submit canceled", submits.canceled)
	t.Run("idempotency key", submits.idempotencyKey)
	t.Run("upload", submits.upload)
	t.Run("upload unreadable", submits.uploadUnreadable)
	t.Run("image address", submits.imageAddress)
	t.Run("poll states", polls.states)
	t.Run("poll fails", polls.fails)
	t.Run("poll meets garbage", polls.garbage)
	t.Run("poll canceled", polls.canceled)
	t.Run("open", opens.open)
	t.Run("open fails", opens.fails)
	t.Run("open canceled", opens.canceled)
	t.Run("link renewed", opens.linkRenewed)
	t.Run("links of other hosts", opens.otherHosts)
	t.Run("cancel", powers.cancel)
	t.Run("remix", powers.remix)
	t.Run("variants", powers.variants)
	t.Run("find", powers.find)
	t.Run("concurrent", s.concurrent)
}

// videoSuite has the checks of a whole adapter, and the shared parts of the others.
type videoSuite struct{ subject VideoSubject }

// suiteAgent is the User-Agent of the suites' clients. Every request of an adapter must have it.
const suiteAgent = "suite/1"

// The checks of one step each: of a create; of a read of a job; of its results; and of optional interfaces.
type (
	submitChecks struct{ videoSuite }
	pollChecks   struct{ videoSuite }
	openChecks   struct{ videoSuite }
	powerChecks  struct{ videoSuite }
)

func (s videoSuite) adapter(t *testing.T) providers.VideoAdapter {
	t.Helper()
	client := upstream.NewClient(&upstream.ClientOptions{Agent: suiteAgent})
	t.Cleanup(client.CloseIdleConnections)
	return s.subject.New(client)
}

// at returns the target at an upstream's address.
func (s videoSuite) at(base string) providers.Target {
	key := hushKey
	if s.subject.Key != "" {
		key = fmt.Sprintf(s.subject.Key, hushKey)
	}
	channel := s.subject.Channel
	channel.Name, channel.BaseURL, channel.Keys = "suite", base, []providers.Secret{providers.Secret(key)}
	return providers.Target{Channel: channel, Key: channel.Keys[0], Model: cmp.Or(s.subject.Model, "up")}
}

// request returns a create that every vendor can write.
func (s videoSuite) request() providers.VideoRequest {
	return providers.VideoRequest{Model: "pub", Prompt: "A cat that plays the piano", IdempotencyKey: "video_1-1"}
}

// accepted submits a job whose upstream accepts it.
func (s videoSuite) accepted(t *testing.T, adapter providers.VideoAdapter, to providers.Target) providers.Ticket {
	t.Helper()
	ticket, err := adapter.Submit(t.Context(), to, s.request())
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	return ticket
}
