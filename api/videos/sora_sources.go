package videos

import (
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/workflows/tasks"
)

// openAISourceBody is the JSON body of an edit and of an extension. It is never filled. The vendor's body has prompt, video (an id) and
// seconds: VideoEditParams and VideoExtendParams of openai-go 3.95.
type openAISourceBody struct {
	Prompt     string         `json:"prompt" minLength:"1" doc:"What is to change, or to follow"`
	Video      videoSource    `json:"video" doc:"The video to work on"`
	Model      string         `json:"model,omitempty" doc:"Model id; by default the model of the source task, otherwise the default of the deployment, if it has one"`
	Seconds    textOrNumber   `json:"seconds,omitzero" doc:"Seconds to generate"`
	Size       string         `json:"size,omitempty" doc:"Width and height, as in 1280x720"`
	Metadata   map[string]any `json:"metadata,omitempty" doc:"Echoed in the task; its members reach the vendor too"`
	WebhookURL string         `json:"webhook_url,omitempty" doc:"Address that receives the event at the task's end; requires a token with a webhook secret"`
}

// openAISourceForm is the multipart body of an edit and of an extension. It is never filled.
type openAISourceForm struct {
	Prompt     string    `json:"prompt" doc:"What is to change, or to follow"`
	Video      body.File `json:"video,omitzero" doc:"Video file, or its URL"`
	VideoID    string    `json:"video[id],omitempty" doc:"Id of a completed video task, in place of video; also written video.id"`
	Model      string    `json:"model,omitempty" doc:"Model id; by default the model of the source task, otherwise the default of the deployment, if it has one"`
	Seconds    string    `json:"seconds,omitempty" doc:"Seconds to generate"`
	Size       string    `json:"size,omitempty" doc:"Width and height, as in 1280x720"`
	WebhookURL string    `json:"webhook_url,omitempty" doc:"Address that receives the event at the task's end; requires a token with a webhook secret"`
}

// openAICharacterForm is the multipart body of a character: VideoNewCharacterParams of openai-go 3.95. It is never filled.
type openAICharacterForm struct {
	Name  string    `json:"name"`
	Video body.File `json:"video"`
}

// videoSource is a video to edit or extend: a task in an object, or a string with its id, a URL or bytes.
type videoSource struct{}

// Schema implements huma.SchemaProvider.
func (videoSource) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeObject, AdditionalProperties: true, Properties: map[string]*huma.Schema{
			"id": body.Described("Id of a completed video task"), "url": body.Described("http, https or data URL"),
		}},
		body.Described("Id of a completed video task, an http, https or data URL, or the video's bytes in Base64"),
	}}
}

func (s *Service) addSources(g *edge.Group, tags []string) {
	registry := g.OpenAPI().Components.Schemas
	check := body.NewChecker[openAISourceBody](registry)
	check.Optional("video") // a form may have a file
	const words = "The source is a completed video task of the token, an upload or a URL. The other fields have the same meaning as in a " +
		"create. The answer is 400 if no channel of the model accepts such a source."
	for _, operation := range [...]struct {
		id, path, summary, description string
		role                           providers.InputRole
	}{
		{
			"editVideo", "/v1/videos/edits", "Edit a video",
			words + " If only the upstream of the source can make a variation, the gateway remixes the source there.",
			providers.SourceVideo,
		},
		{"extendVideo", "/v1/videos/extensions", "Extend a video", words, providers.ExtendVideo},
	} {
		g.With(creates()).Handle(huma.Operation{
			OperationID: operation.id, Method: http.MethodPost, Path: operation.path, Tags: tags,
			Summary: operation.summary, Description: operation.description, Parameters: []*huma.Param{idempotencyParameter()},
			RequestBody: body.DeclareEither[openAISourceBody, openAISourceForm](registry),
			Responses:   body.DeclareAnswer[openAIVideo](registry, "The new task"),
		}, s.creator.create(dialectOf(providers.OpenAI), func(x *edge.Request, r *http.Request) (providers.VideoRequest, work, error) {
			req, source, err := s.checks.readSource(x, r, check)
			return req, work{source, operation.role}, err
		}, showOpenAIVideo))
	}
}

// readSource reads an edit or an extension. It returns a source that is a task as its id; any other source is the request's first input.
func (c fieldChecks) readSource(
	x *edge.Request, r *http.Request, check *body.Checker,
) (req providers.VideoRequest, source string, err error) {
	b, form, err := readSora(x, r, check)
	if err != nil {
		return req, "", err
	}
	req = providers.VideoRequest{
		Model: b.Text("model"), Prompt: b.Text("prompt"), Size: b.Text("size"), WebhookURL: b.Text("webhook_url"),
		Inputs: slices.Concat(form.references, form.others),
	}
	req.Width, req.Height = parseSize(req.Size)
	if req.Metadata, req.Extra, err = c.readFreely(b); err != nil {
		return req, "", err
	}
	if seconds := b.Value("seconds"); seconds != nil {
		if req.Seconds, err = parseSeconds("seconds", numeral(seconds)); err != nil {
			return req, "", err
		}
	}
	video := b.Value("video")
	if video.IsObject() {
		source, video = video.Get("id").Text().String(), video.Get("url")
	} else if id := video.Text().String(); tasks.IsTaskID(id) {
		source, video = id, nil
	}
	switch uploaded := len(req.Of(providers.SourceVideo)) > 0; {
	case req.Prompt == "":
		return req, "", providers.InvalidField("prompt", "Invalid request: 'prompt' is required.")
	case uploaded && (source != "" || video != nil):
		return req, "", providers.InvalidField("video", "Invalid request: 'video' is given more than once.")
	case uploaded || source != "":
		return req, source, nil
	case video == nil:
		return req, "", providers.InvalidField("video", "Invalid request: 'video' is required.")
	}
	input, err := newMedia(providers.SourceVideo, "video", video.Text().Decoded())
	if err != nil {
		return req, "", err
	}
	return req, "", addInput(&req, "video", input)
}

// addCharacters adds POST /v1/videos/characters and GET /v1/videos/characters/{character_id}, which always return 400.
func addCharacters(g *edge.Group, tags []string) {
	g = g.With(reads())
	refuse := func(*edge.Request, *http.Request) error {
		return providers.InvalidField("", "Characters are not supported: no vendor of this service stores them. Send reference_images with the create instead.")
	}
	g.Handle(huma.Operation{
		OperationID: "createVideoCharacter", Method: http.MethodPost, Path: "/v1/videos/characters", Tags: tags,
		Summary: "Create a character", Description: "Always 400: no vendor stores characters.",
		RequestBody: body.DeclareForm[openAICharacterForm](g.OpenAPI().Components.Schemas),
	}, refuse)
	g.Handle(huma.Operation{
		OperationID: "getVideoCharacter", Method: http.MethodGet, Path: "/v1/videos/characters/{character_id}", Tags: tags,
		Summary: "Get a character", Description: "Always 400: no vendor stores characters.",
		Parameters: []*huma.Param{edge.PathParameter("character_id", "Character id")},
		Responses: map[string]*huma.Response{"400": {
			Description: "No vendor stores characters", Content: map[string]*huma.MediaType{"application/json": {Schema: g.FaultSchema()}},
		}},
	}, refuse)
}
