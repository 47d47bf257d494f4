package anthropic

import (
	"time"

	"modelrelay/api/calls"
	"modelrelay/providers/router"
)

// anthropicModel is one entry of the model list in Anthropic format.
type anthropicModel struct {
	Type        string `json:"type" enum:"model"`
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at" format:"date-time"`
}

// anthropicModelList is the model list in Anthropic format. It has one page.
type anthropicModelList struct {
	Data    []anthropicModel `json:"data" nullable:"false"`
	HasMore bool             `json:"has_more"`
	FirstID *string          `json:"first_id" doc:"null in an empty list"`
	LastID  *string          `json:"last_id" doc:"null in an empty list"`
}

// ModelShape returns the functions that render models in this format.
func ModelShape() calls.ModelShape {
	return calls.NewModelShape(newModel, func(models []anthropicModel) anthropicModelList {
		list := anthropicModelList{Data: models}
		if n := len(models); n > 0 {
			list.FirstID, list.LastID = &models[0].ID, &models[n-1].ID
		}
		return list
	})
}

func newModel(model router.Model) anthropicModel {
	return anthropicModel{
		Type: "model", ID: model.ID, DisplayName: model.ID, CreatedAt: time.Unix(calls.ModelCreated, 0).UTC().Format(time.RFC3339),
	}
}
