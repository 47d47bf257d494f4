package providers

// Convention is what the OpenTelemetry conventions for generative AI call the operation, under which other programs'
// figures and traces stand as well. An operation that they do not know keeps its own name.
func (o Operation) Convention() string {
	switch o {
	case Chat, Responses, Messages:
		return "chat"
	case Completions:
		return "text_completion"
	case GenerateContent, StreamContent:
		return "generate_content"
	case Embeddings, BatchEmbeddings:
		return "embeddings"
	default:
		return string(o)
	}
}

// Convention is what the OpenTelemetry conventions for generative AI call the vendor's service.
func (v Vendor) Convention() string {
	if v.Provider != "" {
		return v.Provider
	}
	return v.Name
}
