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

// VideoStep is what a request of a VideoAdapter asks its upstream for.
type VideoStep string

// The steps of a job. An adapter need not have all of them: a vendor that names links to its results has no Content of
// its own.
const (
	VideoSubmit  VideoStep = "submit"
	VideoPoll    VideoStep = "poll"
	VideoContent VideoStep = "content"
	// VideoLink asks for the link to a result, of a vendor that does not name it when it is asked about the job.
	VideoLink VideoStep = "link"
	// VideoUpload brings an image to the upstream before the submit, of a vendor whose submit takes none. upload.http answers it.
	VideoUpload VideoStep = "upload"
	// VideoCancel is a Canceler's request.
	VideoCancel VideoStep = "cancel"
	// VideoRemix is a Remixer's, answered like a submit.
	VideoRemix VideoStep = "remix"
	// VideoFind is what a Finder asks for as well as a repeated submit.
	VideoFind VideoStep = "find"
)

// VideoSubject is the VideoAdapter under test with the wire of its vendor.
//
// Answers holds the vendor's answers, each an HTTP response in a file of its own, as bytes on the wire: submitted.http,
// queued.http, running.http, done.http, failed.http, forgotten.http, unknown_word.http and no_status.http (a job that is
// still running), refused.http (the request's fault), key_refused.http, limited.http, and linked.http (a done job whose
// result is at {{link}}) where the vendor names links; where it always does, done.http holds {{link}} too, which is
// then /result.mp4 at the upstream itself; of a vendor with VideoLink, link.http holds it. A Canceler has cancelled.http,
// and a Finder that needs a request other than its submit has find.http. A header Source in each, which is not sent, says where its shape
// comes from. {{words}} in refused.http, key_refused.http and limited.http is where the vendor's reason is.
type VideoSubject struct {
	New func(*http.Client) providers.VideoAdapter
	// Channel completes the channel: vendor, and whatever the vendor reads of it. The suite sets name, base URL and keys.
	Channel providers.Channel
	// Model is the upstream's name of the model, "up" where it is empty.
	Model string
	// Key is the credential in the vendor's shape, with %s where the suite's secret goes; "" means the secret itself.
	Key     string
	Answers fs.FS
	// Step returns what a request asks for, "" for anything else. The body may be read.
	Step func(*http.Request) VideoStep
	// Authorized reports whether the request carries the key as the vendor requires it.
	Authorized func(req *http.Request, key providers.Secret) bool
	// Job is the id in submitted.http, Failure what failed.http says.
	Job     string
	Failure providers.VideoFailure
	// IdempotencyKey reads the request's idempotency key from a submit; nil where the vendor takes none.
	IdempotencyKey func(*http.Request) string
	// Upload reads the one uploaded image of a submit; nil where the vendor takes none.
	Upload func(*http.Request) (Upload, error)
	// RemixPrompt reads the prompt of a remix; nil where it is the body's "prompt".
	RemixPrompt func(*http.Request) (string, error)
	VideoTraits
}

// VideoTraits are how the vendor's wire is unlike others'.
type VideoTraits struct {
	// NoQueue: the vendor does not tell a queued job from a running one, so there is no queued.http.
	NoQueue bool
	// BareUploads: the vendor takes an upload's bytes alone, without name and type.
	BareUploads bool
	// NoLinks: the vendor takes images as bytes alone, so a client's link is refused.
	NoLinks bool
	// LooksUp: a Finder asks for a lost submit in a request of its own, VideoFind, and never repeats the submit.
	LooksUp bool
	// CancelReads names the answer about a job that a Canceler reads before it stops the job, "queued" for one; "" where it reads
	// none.
	CancelReads string
	// Lists: the answer about a job is a list of jobs, and one in which it is not says that it is forgotten.
	Lists bool
}

// Upload is an input image as the upstream sees it.
type Upload struct {
	Name, ContentType string
	Data              []byte
}

// TestVideo runs the suite.
func TestVideo(t *testing.T, subject VideoSubject) {
	t.Helper()
	s := videoSuite{subject: subject}
	submits, polls, opens, powers := submitChecks{s}, pollChecks{s}, openChecks{s}, powerChecks{s}
	t.Run("life", s.life)
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

// videoSuite has what the checks share, and those of an adapter as a whole.
type videoSuite struct{ subject VideoSubject }

// suiteAgent is the User-Agent of the suites' clients. Every request of an adapter must have it.
const suiteAgent = "suite/1"

// The checks of one step each: that of a create; of a read of a job; of its results; and of what only some vendors can.
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

// at is the target at an upstream's address.
func (s videoSuite) at(base string) providers.Target {
	key := hushKey
	if s.subject.Key != "" {
		key = fmt.Sprintf(s.subject.Key, hushKey)
	}
	channel := s.subject.Channel
	channel.Name, channel.BaseURL, channel.Keys = "suite", base, []providers.Secret{providers.Secret(key)}
	return providers.Target{Channel: channel, Key: channel.Keys[0], Model: cmp.Or(s.subject.Model, "up")}
}

// request is a create that every vendor can write.
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
