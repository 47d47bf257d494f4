package openai

import (
	"modelrelay/api/body"
	"modelrelay/api/calls"
	"modelrelay/providers/router"
)

// openAIModel is one entry of the model list in OpenAI's shape.
type openAIModel struct {
	ID      string `json:"id"`
	Object  string `json:"object" enum:"model"`
	Created int64  `json:"created" doc:"Unix seconds"`
	OwnedBy string `json:"owned_by"`
}

// openAIModelList is the model list in OpenAI's shape.
type openAIModelList struct {
	Object string        `json:"object" enum:"list"`
	Data   []openAIModel `json:"data" nullable:"false"`
}

// ModelShape is how the format shows models.
func ModelShape() calls.ModelShape {
	return calls.ModelShape{
		ListSchema: body.SchemaOf[openAIModelList], OneSchema: body.SchemaOf[openAIModel],
		List: func(models []router.Model) any {
			list := openAIModelList{Object: "list", Data: make([]openAIModel, 0, len(models))}
			for _, model := range models {
				list.Data = append(list.Data, newModel(model))
			}
			return list
		},
		One: func(model router.Model) any { return newModel(model) },
	}
}

func newModel(model router.Model) openAIModel {
	return openAIModel{ID: model.ID, Object: "model", Created: calls.ModelCreated, OwnedBy: model.Vendor}
}
