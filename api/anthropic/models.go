package anthropic

import (
	"time"

	"modelrelay/api/body"
	"modelrelay/api/calls"
	"modelrelay/providers/router"
)

// anthropicModel is one entry of the model list in format A.
type anthropicModel struct {
	Type        string `json:"type" enum:"model"`
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at" format:"date-time"`
}

// anthropicModelList is the model list in format A. It has one page.
type anthropicModelList struct {
	Data    []anthropicModel `json:"data" nullable:"false"`
	HasMore bool             `json:"has_more"`
	FirstID *string          `json:"first_id" doc:"null in an empty list"`
	LastID  *string          `json:"last_id" doc:"null in an empty list"`
}

// ModelShape is how the format shows models.
func ModelShape() calls.ModelShape {
	return calls.ModelShape{
		ListSchema: body.SchemaOf[anthropicModelList], OneSchema: body.SchemaOf[anthropicModel],
		List: func(models []router.Model) any {
			list := anthropicModelList{Data: make([]anthropicModel, 0, len(models))}
			for _, model := range models {
				list.Data = append(list.Data, newModel(model))
			}
			if n := len(list.Data); n > 0 {
				list.FirstID, list.LastID = &list.Data[0].ID, &list.Data[n-1].ID
			}
			return list
		},
		One: func(model router.Model) any { return newModel(model) },
	}
}

func newModel(model router.Model) anthropicModel {
	return anthropicModel{
		Type: "model", ID: model.ID, DisplayName: model.ID, CreatedAt: time.Unix(calls.ModelCreated, 0).UTC().Format(time.RFC3339),
	}
}
