package providers

// Format is a client's wire format: what its SDK sends and how it reads errors.
type Format string

// The formats of the contract.
const (
	OpenAI    Format = "openai"
	Anthropic Format = "anthropic" // format A
	Gemini    Format = "gemini"    // format B
	VendorC   Format = "vendorc"   // Volcengine visual
	Generic   Format = "generic"   // the contract's own video dialect
)

// Operation is what a call requests, independent of the format.
type Operation string

// The operations of relayed calls. A format need not have all of them.
const (
	Chat            Operation = "chat"
	Responses       Operation = "responses"
	CompactResponse Operation = "responses_compact"
	Messages        Operation = "messages"
	CountTokens     Operation = "count_tokens"
	InputTokens     Operation = "input_tokens" // OpenAI's count of a response's input, which no client calls
	GenerateContent Operation = "generate_content"
	Interactions    Operation = "interactions"
	StreamContent   Operation = "stream_content" // GenerateContent in pieces: events, or the elements of one JSON array
	Embeddings      Operation = "embeddings"
	BatchEmbeddings Operation = "batch_embeddings"
	Completions     Operation = "completions"
	Transcriptions  Operation = "transcriptions"
	Translations    Operation = "translations"
	Speech          Operation = "speech"
	ImageGeneration Operation = "image_generation"
	ImageEdit       Operation = "image_edit"
	Rerank          Operation = "rerank"
	Moderations     Operation = "moderations"
	Realtime        Operation = "realtime"
)

// VideoTask is the operation of a video create. The router selects a channel whose vendor has a VideoAdapter for it.
const VideoTask Operation = "video"

// Endpoint is a format and one of its operations. It is comparable.
type Endpoint struct {
	Format    Format
	Operation Operation
}

// String returns "format.operation", for logs.
func (e Endpoint) String() string { return string(e.Format) + "." + string(e.Operation) }

// RealtimeSession returns the endpoint of realtime conversations, which only OpenAI's format has.
func RealtimeSession() Endpoint { return Endpoint{Format: OpenAI, Operation: Realtime} }

// Endpoints returns the endpoints of the operations in a vendor's table.
func Endpoints[T any](format Format, operations map[Operation]T) []Endpoint {
	endpoints := make([]Endpoint, 0, len(operations))
	for name := range operations {
		endpoints = append(endpoints, Endpoint{format, name})
	}
	return endpoints
}
