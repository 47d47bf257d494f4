package fakeveo

import (
	"net/http"
	"slices"
	"strings"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/googleapi"
)

type create struct {
	Instances  []instance        `json:"instances"`
	Parameters parameters        `json:"parameters"`
	Labels     map[string]string `json:"labels"`

	media []fake.Media
}

type instance struct {
	Prompt     string      `json:"prompt"`
	Image      *media      `json:"image"`
	LastFrame  *media      `json:"lastFrame"`
	References []reference `json:"referenceImages"`
	Video      *media      `json:"video"`
	Mask       *media      `json:"mask"`
}

// media is an image or a video: bytes in Base64, or an object of Google's store.
type media struct {
	Bytes    string `json:"bytesBase64Encoded"`
	MimeType string `json:"mimeType"`
	Stored   string `json:"gcsUri"`
	MaskMode string `json:"maskMode"`
	// Of a video in the Gemini API's shape.
	URI      string `json:"uri"`
	Encoded  string `json:"encodedVideo"`
	Encoding string `json:"encoding"`
}

type reference struct {
	Image media  `json:"image"`
	Type  string `json:"referenceType"`
}

type parameters struct {
	SampleCount *int    `json:"sampleCount"`
	Duration    *int    `json:"durationSeconds"`
	AspectRatio string  `json:"aspectRatio"`
	Resolution  string  `json:"resolution"`
	Person      string  `json:"personGeneration"`
	Negative    string  `json:"negativePrompt"`
	Enhance     *bool   `json:"enhancePrompt"`
	Seed        *uint32 `json:"seed"`
	FPS         *int    `json:"fps"`
	Audio       *bool   `json:"generateAudio"`
	StorageURI  string  `json:"storageUri"`
	more
}

// more are parameters that the fake takes as they are.
type more struct {
	Compression string `json:"compressionQuality"`
	Resize      string `json:"resizeMode"`
	Topic       string `json:"pubsubTopic"`
}

// The vendor's limits, and the one length of a video from references, which is the default.
const (
	maxSamples, maxReferences = 4, 3
	long                      = 8
)

func (p parameters) seconds() int {
	if p.Duration == nil {
		return long
	}
	return *p.Duration
}

func (p parameters) samples() int {
	if p.SampleCount == nil {
		return 1
	}
	return *p.SampleCount
}

func parseCreate(x *fake.Exchange, cloud bool) *fake.Problem {
	q := new(create)
	p := googleapi.Unknown(x.DecodeKnown(q))
	x.Request = q
	x.Model, _, _ = strings.Cut(x.HTTP.PathValue("call"), ":")
	if len(q.Instances) > 0 {
		x.Prompt = q.Instances[0].Prompt
	}
	switch {
	case p != nil:
		return p
	case fake.UnknownModel(x.Model) || !strings.HasPrefix(x.Model, "veo-"):
		return &fake.Problem{
			Status: http.StatusNotFound, Kind: fake.NotFound,
			Message: "Publisher Model `publishers/google/models/" + x.Model + "` was not found or your project does not have access to it.",
		}
	case len(q.Instances) != 1:
		return fake.Invalidf("", "The request has exactly one instance.")
	}
	if p := q.Parameters.check(x.Model, cloud); p != nil {
		return p
	}
	return q.checkInstance(x.Model, cloud)
}

// keyed are the parameters that the Gemini API's shape does not have.
func (p parameters) keyed() string {
	for name, there := range map[string]bool{
		"seed": p.Seed != nil, "fps": p.FPS != nil, "generateAudio": p.Audio != nil,
		"storageUri": p.StorageURI != "",
	} {
		if there {
			return name
		}
	}
	return ""
}

func (p parameters) check(model string, cloud bool) *fake.Problem {
	seconds, resolutions := []int{4, 6, long}, []string{"720p", "1080p", "4k"}
	switch {
	case strings.HasPrefix(model, "veo-2"):
		seconds, resolutions = []int{5, 6, 7, long}, resolutions[:1]
	case strings.HasPrefix(model, "veo-3.1-lite"):
		resolutions = resolutions[:2]
	}
	switch name := p.keyed(); {
	case !cloud && name != "":
		return fake.Invalidf("", "`%s` isn't supported by this model. Please remove it or refer to the Gemini API documentation for supported usage.", name)
	case p.samples() < 1 || p.samples() > maxSamples:
		return fake.Invalidf("", "sampleCount must be from 1 to %d.", maxSamples)
	case p.Duration != nil && !slices.Contains(seconds, *p.Duration):
		return fake.Invalidf("", "Unsupported output video duration %d seconds, supported durations are %v for feature text_to_video.",
			*p.Duration, seconds)
	case p.AspectRatio != "" && p.AspectRatio != "16:9" && p.AspectRatio != "9:16":
		return fake.Invalidf("", "aspectRatio must be 16:9 or 9:16.")
	case p.Resolution != "" && !slices.Contains(resolutions, p.Resolution):
		return fake.Invalidf("", "Unsupported resolution %s.", p.Resolution)
	case !cloud && p.seconds() != long && (p.Resolution == "1080p" || p.Resolution == "4k"):
		return fake.Invalidf("", "This resolution is for videos of %d seconds.", long)
	case p.Person != "" && !slices.Contains([]string{"dont_allow", "allow_adult", "allow_all"}, p.Person):
		return fake.Invalidf("", "personGeneration must be one of dont_allow, allow_adult, allow_all.")
	}
	return nil
}

func (q *create) checkInstance(model string, cloud bool) *fake.Problem {
	in := &q.Instances[0]
	switch framed := in.Image != nil || in.LastFrame != nil; {
	case in.LastFrame != nil && in.Image == nil:
		return fake.Invalidf("", "lastFrame needs image.")
	case framed && (len(in.References) > 0 || in.Video != nil), len(in.References) > 0 && in.Video != nil:
		return fake.Invalidf("", "image, referenceImages and video exclude one another.")
	case len(in.References) > maxReferences || len(in.References) > 0 &&
		(q.Parameters.seconds() != long || strings.HasPrefix(model, "veo-3.1-lite")):
		return fake.Invalidf("", "referenceImages are at most %d, for videos of %d seconds.", maxReferences, long)
	case in.Prompt == "" && in.Image == nil && in.Video == nil:
		return fake.Invalidf("", "The prompt is empty.")
	}
	for _, image := range []*media{in.Image, in.LastFrame} {
		if p := q.read(image, true, cloud); p != nil {
			return p
		}
	}
	for _, r := range in.References {
		if r.Type != "asset" && (r.Type != "style" || !strings.HasPrefix(model, "veo-2")) {
			return fake.Invalidf("", "referenceType must be asset.")
		}
		if p := q.read(&r.Image, true, cloud); p != nil {
			return p
		}
	}
	return q.read(in.Video, false, cloud)
}

func (q *create) read(one *media, image, cloud bool) *fake.Problem {
	if one == nil {
		return nil
	}
	bytes, kind, address := one.Bytes, one.MimeType, one.Stored
	if !cloud && !image {
		bytes, kind, address = one.Encoded, one.Encoding, one.URI
	}
	m, ok := fake.ReadBase64(bytes)
	kinds := []string{"image/jpeg", "image/png", "image/webp"}
	switch {
	case (bytes == "") == (address == ""):
		return fake.Invalidf("", "Input instance is missing bytesBase64Encoded or gcsUri.")
	case address != "" && cloud && !strings.HasPrefix(address, "gs://"):
		return fake.Invalidf("", "gcsUri must begin with gs://.")
	case address != "":
		m.URL = address
	case !ok, image && (!m.IsImage() || !slices.Contains(kinds, kind)), kind == "":
		return fake.Invalidf("", "Unable to process input media with the mimeType %q.", kind)
	}
	q.media = append(q.media, m)
	return nil
}
