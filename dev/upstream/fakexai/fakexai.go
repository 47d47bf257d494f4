// Package fakexai fakes xAI's video API. Shapes: xai-org/xai-sdk-python 1.19.0 (proto/v6/video_pb2.pyi), vercel/ai packages/xai/src
// (xai-video-model.ts, xai-error.ts). Not documented, and so a guess: the statuses for a wrong key and an unknown id.
//
// Below /xai/v1/: videos/{generations,edits,extensions}, videos/{id}.
package fakexai

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/jobs"
)

type api struct{ *fake.Server }

// Serve serves the API under /xai/v1.
func Serve(server *fake.Server) {
	s := &api{server}
	v := &fake.Vendor{Name: "xai", Authenticate: authenticate, Refuse: refuse, Unknown: func(string) fake.Problem {
		return fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Message: "The requested resource was not found."}
	}}
	s.ServeLinks(v.Name, nil)
	for _, kind := range []string{"generations", "edits", "extensions"} {
		s.Handle("POST /xai/v1/videos/"+kind, fake.Operation{
			Vendor: v, Name: "video.create",
			Parse: func(x *fake.Exchange) *fake.Problem { return parseCreate(x, kind) }, Answer: s.answerCreate,
		})
	}
	s.Handle("GET /xai/v1/videos/{id}", fake.Operation{Vendor: v, Name: "video.get", Parse: s.ParseID, Answer: s.answerGet})
	s.Handle("GET /xai/v1/models", fake.Operation{Vendor: v, Name: "models", Answer: answerModels})
	s.Handle("/xai/", fake.Operation{Vendor: v, Name: "unknown", Answer: func(x *fake.Exchange) {
		refuse(x, fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Message: "The requested resource was not found."})
	}})
}

// authenticate refuses a wrong key as a bad request.
func authenticate(x *fake.Exchange) (string, *fake.Problem) {
	key, refusal := fake.BearerKey(x)
	if refusal != nil {
		refusal = fake.Invalidf("", "Incorrect API key provided: %s. You can obtain an API key from https://console.x.ai.", shown(key))
	}
	return key, refusal
}

func shown(key string) string {
	const most = 3
	return key[:min(len(key), most)] + "***"
}

// refuse answers {"code","error"}.
func refuse(x *fake.Exchange, p fake.Problem) {
	code := cmp.Or(p.Code, fake.ByStatus[string]{
		http.StatusNotFound:        "Some requested entity was not found",
		http.StatusForbidden:       "The caller does not have permission to execute the specified operation",
		http.StatusTooManyRequests: "Some resource has been exhausted", http.StatusInternalServerError: "The service is currently unavailable",
		0: "Client specified an invalid argument",
	}.Of(p.Status))
	x.JSON(p.Status, map[string]string{"code": code, "error": p.Message})
}

func answerModels(x *fake.Exchange) {
	x.Accept()
	data := []any{}
	for _, id := range []string{"grok-imagine-video", "grok-imagine-video-1.5"} {
		data = append(data, map[string]any{"id": id, "object": "model", "created": 1_754_000_000, "owned_by": "xai"})
	}
	x.JSON(http.StatusOK, map[string]any{"object": "list", "data": data})
}

type place struct {
	URL    string `json:"url"`
	FileID string `json:"file_id"`
}

// create is the body of all three routes.
type create struct {
	Model           string         `json:"model"`
	Prompt          string         `json:"prompt"`
	Image           *place         `json:"image"`
	LastFrame       *place         `json:"last_frame"`
	Keyframes       []any          `json:"keyframes"`
	References      []place        `json:"reference_images"`
	ReferenceAudios []any          `json:"reference_audios"`
	Video           *place         `json:"video"`
	Duration        *int           `json:"duration"`
	AspectRatio     string         `json:"aspect_ratio"`
	Resolution      string         `json:"resolution"`
	GenerateAudio   *bool          `json:"generate_audio"`
	User            string         `json:"user"`
	Storage         map[string]any `json:"storage_options"`

	media []fake.Media
}

// The vendor's limits: seconds of a video, of one from references, and what an extension adds; references; keyframes.
const (
	maxSeconds, maxReferenceSeconds, maxExtension = 15, 10, 10
	maxReferences, maxKeyframes, maxAudios        = 7, 4, 3
)

func parseCreate(x *fake.Exchange, kind string) *fake.Problem {
	q := new(create)
	p := x.DecodeKnown(q)
	x.Request, x.Model, x.Prompt = q, q.Model, q.Prompt
	switch {
	case p != nil && p.Param != "":
		return &fake.Problem{
			Status: http.StatusUnprocessableEntity, Kind: fake.Invalid,
			Message: "Failed to deserialize the JSON body into the target type: unknown field `" + p.Param + "`",
		}
	case p != nil:
		return p
	case q.Model == "":
		return &fake.Problem{
			Status: http.StatusUnprocessableEntity, Kind: fake.Invalid,
			Message: "Failed to deserialize the JSON body into the target type: missing field `model`",
		}
	case fake.UnknownModel(q.Model) || !strings.HasPrefix(q.Model, "grok-imagine-video"):
		return &fake.Problem{
			Status: http.StatusNotFound, Kind: fake.NotFound,
			Message: "The model " + q.Model + " does not exist or your team does not have access to it.",
		}
	case q.Prompt == "":
		return fake.Invalidf("", "Prompt cannot be empty.")
	}
	newer := strings.HasPrefix(q.Model, "grok-imagine-video-1.5")
	if p := q.checkInputs(kind, newer); p != nil {
		return p
	}
	if p := q.checkFrame(kind, newer); p != nil {
		return p
	}
	return q.read()
}

func (q *create) checkInputs(kind string, newer bool) *fake.Problem {
	switch ways := count(q.Image != nil, len(q.References) > 0, q.Video != nil); {
	case ways > 1:
		return fake.Invalidf("", "Only one of image, reference_images and video may be given.")
	case (kind != "generations") != (q.Video != nil):
		return fake.Invalidf("", "A video is needed by edits and extensions, and by them alone.")
	case kind != "generations" && newer:
		return fake.Invalidf("", "This model edits no videos.")
	case (q.LastFrame != nil || len(q.Keyframes) > 0 || len(q.ReferenceAudios) > 0) && !newer:
		return fake.Invalidf("", "This model takes no last_frame, keyframes or reference_audios.")
	case len(q.References) > maxReferences || len(q.Keyframes) > maxKeyframes || len(q.ReferenceAudios) > maxAudios:
		return fake.Invalidf("", "Too many references.")
	}
	return nil
}

func (q *create) checkFrame(kind string, newer bool) *fake.Problem {
	longest, least := maxSeconds, 1
	switch {
	case kind == "extensions":
		longest, least = maxExtension, 2
	case len(q.References) > 0:
		longest = maxReferenceSeconds
	}
	resolutions := []string{"480p", "720p"}
	if newer && len(q.References) == 0 {
		resolutions = append(resolutions, "1080p")
	}
	switch {
	case kind == "edits" && q.Duration != nil:
		return fake.Invalidf("", "duration is not supported for edits.")
	case kind != "generations" && (q.AspectRatio != "" || q.Resolution != ""):
		return fake.Invalidf("", "aspect_ratio and resolution are those of the video.")
	case q.Duration != nil && (*q.Duration < least || *q.Duration > longest):
		return fake.Invalidf("", "duration must be from %d to %d.", least, longest)
	case q.AspectRatio != "" && !slices.Contains([]string{"1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3"}, q.AspectRatio):
		return fake.Invalidf("", "Invalid aspect_ratio: %s", q.AspectRatio)
	case q.Resolution != "" && !slices.Contains(resolutions, q.Resolution):
		return fake.Invalidf("", "Invalid resolution: %s", q.Resolution)
	}
	return nil
}

func count(facts ...bool) (n int) {
	for _, fact := range facts {
		if fact {
			n++
		}
	}
	return n
}

// read reads all inputs: an address, a data URI or the id of a file.
func (q *create) read() *fake.Problem {
	images := q.References
	for _, one := range []*place{q.Image, q.LastFrame} {
		if one != nil {
			images = append(images, *one)
		}
	}
	for _, one := range images {
		if p := q.add(one, true); p != nil {
			return p
		}
	}
	if q.Video != nil {
		return q.add(*q.Video, false)
	}
	return nil
}

func (q *create) add(one place, image bool) *fake.Problem {
	m, ok := fake.ReadURL(one.URL)
	switch {
	case count(one.URL != "", one.FileID != "") != 1:
		return fake.Invalidf("", "Exactly one of url and file_id is needed.")
	case one.FileID != "":
		m.URL = one.FileID
	case !ok || image && !m.IsImage():
		return fake.Invalidf("", "Failed to fetch the media.")
	}
	q.media = append(q.media, m)
	return nil
}

func (s *api) answerCreate(x *fake.Exchange) {
	q := fake.RequestOf[create](x)
	spec := jobs.Job{ID: fake.RandomUUID(), Seconds: "6", Size: q.Resolution}
	if q.Duration != nil {
		spec.Seconds = strconv.Itoa(*q.Duration)
	}
	for _, m := range q.media {
		m.Describe(&spec)
	}
	if j := s.Submit(x, spec); j != nil {
		x.JSON(http.StatusOK, map[string]string{"request_id": j.ID})
	}
}

// answerGet answers 202 while the job is not done, without a body while it waits.
func (s *api) answerGet(x *fake.Exchange) {
	j := s.Poll(x)
	if j == nil {
		return
	}
	now := time.Now()
	state, progress := j.At(now)
	answer := map[string]any{"model": j.Model, "progress": progress}
	status, word := http.StatusOK, ""
	switch state {
	case jobs.Queued:
		if j.Word == "" {
			x.WriteHeader(http.StatusAccepted)
			return
		}
		status = http.StatusAccepted
	case jobs.Running:
		status, word = http.StatusAccepted, "pending"
	case jobs.Completed:
		word = "done"
		seconds, _ := strconv.Atoi(j.Seconds) // written by answerCreate
		answer["video"] = map[string]any{"url": s.VideoLink(x, j, 0), "duration": seconds, "respect_moderation": true}
		answer["usage"] = map[string]any{"cost_in_usd_ticks": 500_000_000 * seconds}
	case jobs.Expired:
		word = "expired"
	default:
		word = "failed"
		fault := j.FaultAs(now, "internal_error")
		if fault.Code == "respect_moderation" { // made, and withheld
			word = "done"
			answer["video"] = map[string]any{"respect_moderation": false}
			break
		}
		answer["error"] = map[string]string{"code": fault.Code, "message": fault.Message}
	}
	answer["status"] = j.Named(word)
	x.JSON(status, answer)
}
