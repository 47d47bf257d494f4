// Package fakeluma fakes Luma's Agents API. Shapes: lumalabs/luma-agents-typescript 0.3.0 (src/resources/generations.ts). Its errors
// are not documented; those of the API before it replace them.
//
// Below /luma/v1/: generations[/{id}].
package fakeluma

import (
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/jobs"
)

type api struct{ *fake.Server }

// Serve serves the API under /luma/v1.
func Serve(server *fake.Server) {
	s := &api{server}
	v := &fake.Vendor{Name: "luma", Authenticate: fake.BearerKey, Refuse: refuse}
	s.ServeLinks(v.Name, &fake.Links{Life: time.Hour})
	s.Handle("POST /luma/v1/generations", fake.Operation{Vendor: v, Name: "video.create", Parse: s.parseCreate, Answer: s.answerCreate})
	s.Handle("GET /luma/v1/generations/{id}", fake.Operation{Vendor: v, Name: "video.get", Parse: s.ParseID, Answer: s.answerGet})
	s.Handle("/luma/", fake.Operation{Vendor: v, Name: "unknown", Answer: func(x *fake.Exchange) {
		refuse(x, fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Message: "Not Found"})
	}})
}

// refuse answers {"detail"}: a text, or a list where a member is wrong.
func refuse(x *fake.Exchange, p fake.Problem) {
	if p.Param == "" || p.Status != http.StatusBadRequest {
		x.JSON(p.Status, map[string]any{"detail": p.Message})
		return
	}
	at := []string{"body"}
	at = append(at, strings.Split(p.Param, ".")...)
	x.JSON(http.StatusUnprocessableEntity, map[string]any{"detail": []any{map[string]any{"msg": p.Message, "loc": at, "type": "value_error"}}})
}

// create is the body of a create; members of images alone are not in it.
type create struct {
	Model       string   `json:"model"`
	Type        string   `json:"type"`
	Prompt      string   `json:"prompt"`
	AspectRatio string   `json:"aspect_ratio"`
	Video       settings `json:"video"`
	Source      *ref     `json:"source"`
	UserID      string   `json:"user_id"`

	frames []fake.Media
}

type settings struct {
	Duration        string         `json:"duration"`
	Resolution      string         `json:"resolution"`
	StartFrame      *ref           `json:"start_frame"`
	EndFrame        *ref           `json:"end_frame"`
	Keyframes       []ref          `json:"keyframes"`
	KeyframeIndexes []int          `json:"keyframe_indexes"`
	Loop            bool           `json:"loop"`
	HDR             bool           `json:"hdr"`
	EXR             bool           `json:"exr_export"`
	SourcePosition  map[string]any `json:"source_position"`
	Edit            map[string]any `json:"edit"`
}

// ref names an image or a video in exactly one way.
type ref struct {
	URL          string `json:"url"`
	Data         string `json:"data"`
	MediaType    string `json:"media_type"`
	GenerationID string `json:"generation_id"`
	FileID       string `json:"file_id"`
}

// maxPrompt is in characters.
const maxPrompt = 6000

func (s *api) parseCreate(x *fake.Exchange) *fake.Problem {
	q := new(create)
	p := x.DecodeKnown(q)
	x.Request, x.Model, x.Prompt = q, q.Model, q.Prompt
	video := q.Type == "video" || q.Type == "video_edit" || q.Type == "video_reframe"
	switch length := utf8.RuneCountInString(q.Prompt); {
	case p != nil:
		return p
	case !video: // an image, which is not faked
		return fake.Invalidf("type", "Only videos are made here.")
	case fake.UnknownModel(q.Model) || !strings.HasPrefix(q.Model, "ray-"):
		return fake.Invalidf("model", "Unknown model for this type.")
	case length == 0 || length > maxPrompt:
		return fake.Invalidf("prompt", "The prompt has from 1 to %d characters.", maxPrompt)
	case q.AspectRatio != "" && !slices.Contains([]string{"9:16", "3:4", "1:1", "4:3", "16:9", "21:9"}, q.AspectRatio):
		return fake.Invalidf("aspect_ratio", "This aspect ratio is not supported by the model.")
	case (q.Source != nil) != (q.Type != "video"):
		return fake.Invalidf("source", "A source goes with video_edit and video_reframe.")
	}
	return s.checkVideo(q)
}

func (s *api) checkVideo(q *create) *fake.Problem {
	v := &q.Video
	framed := v.StartFrame != nil || v.EndFrame != nil
	switch long := v.Duration == "10s"; {
	case v.Duration != "" && v.Duration != "5s" && !long:
		return fake.Invalidf("video.duration", "Input should be '5s' or '10s'")
	case v.Resolution != "" && !slices.Contains([]string{"360p", "540p", "720p", "1080p"}, v.Resolution):
		return fake.Invalidf("video.resolution", "Input should be '540p', '720p' or '1080p'")
	case long && (framed || v.Loop):
		return fake.Invalidf("video.duration", "10s is not supported with frames or loop.")
	case v.Loop && (v.HDR || v.EndFrame != nil):
		return fake.Invalidf("video.loop", "loop is not supported with hdr or end_frame.")
	case len(v.Keyframes) != len(v.KeyframeIndexes):
		return fake.Invalidf("video.keyframe_indexes", "Each keyframe has an index.")
	case q.Source != nil && v.Duration != "":
		return fake.Invalidf("video.duration", "The duration is that of the source.")
	}
	for name, r := range map[string]*ref{"video.start_frame": v.StartFrame, "video.end_frame": v.EndFrame, "source": q.Source} {
		if r == nil {
			continue
		}
		m, p := s.read(name, r)
		if p != nil {
			return p
		}
		q.frames = append(q.frames, m)
		if name != "source" && !m.IsImage() {
			return fake.Invalidf(name, "The file is no image.")
		}
	}
	return nil
}

func (s *api) read(name string, r *ref) (fake.Media, *fake.Problem) {
	ways := 0
	for _, text := range []string{r.URL, r.Data, r.GenerationID, r.FileID} {
		if text != "" {
			ways++
		}
	}
	address, isURL := fake.ReadURL(r.URL)
	data, isData := fake.ReadBase64(r.Data)
	switch {
	case ways != 1:
		return fake.Media{}, fake.Invalidf(name, "Exactly one of url, data, generation_id and file_id is needed.")
	case r.URL != "" && (!isURL || address.URL == ""):
		return fake.Media{}, fake.Invalidf(name+".url", "Input should be a valid URL")
	case r.Data != "" && (!isData || r.MediaType == ""):
		return fake.Media{}, fake.Invalidf(name+".data", "data is Base64, beside media_type.")
	case r.GenerationID != "" && s.Jobs.Find("luma", r.GenerationID) == nil:
		return fake.Media{}, fake.Invalidf(name+".generation_id", "The generation does not exist.")
	case r.Data != "":
		return data, nil
	}
	address.URL = r.URL + r.GenerationID + r.FileID
	return address, nil
}

func (s *api) answerCreate(x *fake.Exchange) {
	q := fake.RequestOf[create](x)
	spec := jobs.Job{
		ID:      fake.RandomUUID(),
		Seconds: strings.TrimSuffix(q.Video.Duration, "s"), Size: q.Video.Resolution,
	}
	for _, m := range q.frames {
		m.Describe(&spec)
	}
	if j := s.Submit(x, spec); j != nil {
		x.JSON(http.StatusCreated, s.generation(x, j))
	}
}

func (s *api) answerGet(x *fake.Exchange) {
	if j := s.Poll(x); j != nil {
		x.JSON(http.StatusOK, s.generation(x, j))
	}
}

// generation is the vendor's job. Each answer has a fresh link.
func (s *api) generation(x *fake.Exchange, j *jobs.Job) map[string]any {
	now := time.Now()
	g := map[string]any{
		"id": j.ID, "type": "video", "model": j.Model, "created_at": time.UnixMilli(j.Created).UTC().Format(time.RFC3339Nano),
		"output": []any{}, "failure_reason": nil, "failure_code": nil,
	}
	var word string
	switch state, _ := j.At(now); state {
	case jobs.Queued:
		word = "queued"
	case jobs.Running:
		word = "processing"
	case jobs.Completed:
		word = "completed"
		g["output"] = []any{map[string]string{"type": "video", "url": s.VideoLink(x, j, 0)}}
	default:
		word = "failed"
		fault := j.FaultAs(now, "generation_failed")
		g["failure_code"], g["failure_reason"] = fault.Code, fault.Message
	}
	g["state"] = j.Named(word)
	return g
}
