package openai

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/calls"
	"modelrelay/api/edge"
	"modelrelay/providers"
)

// The bodies of the image calls, in the contract's nested shape and in OpenAI's: input or prompt is required. They are never filled: the
// schemas and the field checks are compiled from them.
type (
	openAIImage struct {
		Model      string          `json:"model" minLength:"1" doc:"Model id, taken from the model list"`
		Input      imageInput      `json:"input,omitzero" doc:"Required unless there is a prompt"`
		Parameters imageParameters `json:"parameters,omitzero"`
		Prompt     string          `json:"prompt,omitempty" doc:"What the image shows, in place of input"`
		N          int             `json:"n,omitempty" doc:"Number of images"`
		Size       string          `json:"size,omitempty" doc:"Width and height, as in 1024x1024"`
		Stream     bool            `json:"stream,omitempty" doc:"Stream partial images as server-sent events"`
	}
	imageInput struct {
		Messages []imageMessage `json:"messages" nullable:"false" doc:"Each with a role and content: objects with a text"`
	}
	imageMessage struct {
		Role    string      `json:"role,omitempty"`
		Content []imageText `json:"content,omitempty" nullable:"false"`
	}
	imageText struct {
		Text string `json:"text,omitempty"`
	}
	imageParameters struct {
		NegativePrompt string `json:"negative_prompt,omitempty"`
		PromptExtend   bool   `json:"prompt_extend,omitempty"`
		Watermark      bool   `json:"watermark,omitempty"`
		Size           string `json:"size,omitempty" doc:"Form <width>*<height>"`
	}

	openAIImageEdit struct {
		Model      string              `json:"model" minLength:"1" doc:"Model id, taken from the model list"`
		Input      imageEditInput      `json:"input,omitzero" doc:"Required unless there is a prompt"`
		Parameters imageEditParameters `json:"parameters,omitzero"`
		Prompt     string              `json:"prompt,omitempty" doc:"What to change, in place of input"`
		N          int                 `json:"n,omitempty" doc:"Number of images"`
		Size       string              `json:"size,omitempty" doc:"Width and height, as in 1024x1024"`
		Stream     bool                `json:"stream,omitempty" doc:"Stream partial images as server-sent events"`
	}
	imageEditInput struct {
		Messages []imageEditMessage `json:"messages" nullable:"false" doc:"Each with a role and content: objects with an image URL or a text"`
	}
	imageEditMessage struct {
		Role    string             `json:"role,omitempty"`
		Content []imageEditContent `json:"content,omitempty" nullable:"false"`
	}
	imageEditContent struct {
		Image string `json:"image,omitempty" doc:"Image URL"`
		Text  string `json:"text,omitempty"`
	}
	imageEditParameters struct {
		NegativePrompt string `json:"negative_prompt,omitempty"`
		PromptExtend   bool   `json:"prompt_extend,omitempty"`
		Watermark      bool   `json:"watermark,omitempty"`
		N              int    `json:"n,omitempty"`
	}

	openAIImageForm struct {
		Model  string      `json:"model" minLength:"1" doc:"Model id, taken from the model list"`
		Image  []body.File `json:"image,omitempty" nullable:"false" doc:"One file or several; image[] works too"`
		Mask   body.File   `json:"mask,omitzero"`
		Prompt string      `json:"prompt,omitempty" doc:"What to change; a part named input may replace it"`
		N      int         `json:"n,omitempty" doc:"Number of images"`
		Size   string      `json:"size,omitempty" doc:"Width and height, as in 1024x1024"`
		Stream bool        `json:"stream,omitempty" doc:"Stream partial images as server-sent events"`
	}
)

func (a adder) addImages() {
	const either = "Accepts the nested shape and OpenAI's; the channel receives the client's shape. "
	tags := []string{"Image generation"}
	registry := a.registry()
	generation := relayed{
		name: providers.ImageGeneration, finish: needPrompt,
		Operation: huma.Operation{
			OperationID: "createImage", Path: "/v1/images/generations", Tags: tags, Summary: "Generate an image",
			Description: either + "Fields that are not listed here reach the upstream untouched.",
			Responses:   calls.DeclareAnswer("The images", true),
		},
	}
	addCall[openAIImage](a, generation)
	generation.RequestBody = body.DeclareJSON[openAIImage](registry)
	check, fields := newChecker[openAIImageEdit](registry), body.NewChecker[openAIImageForm](registry)
	edit := relayed{name: providers.ImageEdit, finish: needPrompt}
	readGeneration, readJSON := readJSON(newChecker[openAIImage](registry), generation), readJSON(check, edit)
	edits := huma.Operation{
		OperationID: "editImage", Method: http.MethodPost, Path: "/v1/images/edits", Tags: tags, Summary: "Edit an image",
		Description: either + "Fields and parts that are not listed here reach the upstream untouched.",
		RequestBody: body.DeclareEither[openAIImageEdit, openAIImageForm](registry), Responses: calls.DeclareAnswer("The images", true),
	}
	readEdit := func(x *edge.Request, r *http.Request, raw []byte) (*calls.Call, error) {
		if boundary, form := body.IsForm(r.Header.Get("Content-Type")); form {
			return readForm(r, raw, boundary, fields, edit.name, needPromptPart)
		}
		return readJSON(x, r, raw)
	}
	a.group.With(calls.Access()).Handle(edits, a.calls.Relayed(readEdit))
	a.addAsyncImages(generation.Operation, edits, readGeneration, readEdit)
}

// needPrompt requires input or prompt.
func needPrompt(_ *http.Request, _ *calls.Call, b *body.JSON) error {
	if b.Value("input") == nil && b.Value("prompt") == nil {
		return noPrompt()
	}
	return nil
}

func needPromptPart(f *body.Form) error {
	if f.Has("input") || f.Has("prompt") {
		return nil
	}
	return noPrompt()
}

func noPrompt() *providers.Fault {
	return providers.InvalidField("input", "Invalid request: 'input' or 'prompt' is required.")
}
