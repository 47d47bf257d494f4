package api

import "github.com/danielgtaylor/huma/v2"

// openAIError is the error body of the OpenAI format, and of every path that belongs to no other.
type openAIError struct {
	Error openAIErrorBody `json:"error"`
}

type openAIErrorBody struct {
	Message string  `json:"message" doc:"What went wrong, for people"`
	Type    *string `json:"type" doc:"Class of the error"`
	Param   *string `json:"param" doc:"The request field at fault"`
	Code    string  `json:"code" nullable:"true" doc:"The error itself, for programs; null in some errors of an upstream"`
}

// anthropicError is the error body of format A.
type anthropicError struct {
	Type      string             `json:"type" enum:"error"`
	Error     anthropicErrorBody `json:"error"`
	RequestID string             `json:"request_id" required:"false" doc:"Absent in some errors of an upstream"`
}

type anthropicErrorBody struct {
	Type    *string `json:"type" doc:"Class of the error"`
	Message string  `json:"message"`
}

// geminiError is the error body of format B.
type geminiError struct {
	Error geminiErrorBody `json:"error"`
}

type geminiErrorBody struct {
	Code    int    `json:"code" doc:"The HTTP status"`
	Message string `json:"message"`
	Status  string `json:"status" doc:"Class of the error"`
	Details []any  `json:"details" required:"false" doc:"Absent in some errors of an upstream"`
}

// vendorCError is the error body of format C.
type vendorCError struct {
	Code      int     `json:"code" doc:"50200 for a bad request, a failed task's own code, else 50000 plus the HTTP status"`
	Message   string  `json:"message"`
	Data      nothing `json:"data"`
	RequestID string  `json:"request_id"`
}

// nothing is null in JSON.
type nothing struct{}

// MarshalJSON implements json.Marshaler.
func (nothing) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// Schema implements huma.SchemaProvider.
func (nothing) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: "null"} }
