package api

import "modelrelay/providers"

// modelCreated is the "created" of every model: the gateway knows no better date, and a constant one keeps lists equal
// over restarts and processes. It is 2023-03-01, 00:00 UTC.
const modelCreated = 1677628800

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

func openAIModelOf(model providers.Model) any { return newOpenAIModel(model) }

func newOpenAIModel(model providers.Model) openAIModel {
	return openAIModel{ID: model.ID, Object: "model", Created: modelCreated, OwnedBy: model.Vendor}
}

func openAIModels(models []providers.Model) any {
	list := openAIModelList{Object: "list", Data: make([]openAIModel, 0, len(models))}
	for _, model := range models {
		list.Data = append(list.Data, newOpenAIModel(model))
	}
	return list
}
