package providers

// Usage is what one call consumed, in the vendor's tokens. Cached is the part of Input that the vendor served from its cache.
type Usage struct{ Input, Cached, Output int64 }

// UsageShape says where the answers of one endpoint count tokens. Each string is the path of a number, its member names
// joined by dots, from the root of the answer or of one stream event's data. Paths of one counter add up within a
// document; a later event of a stream, or element of an array that is the answer, overrules an earlier one. The zero shape counts nothing.
type UsageShape struct {
	Input, Cached, Output []string
	// Content is the path of the array that is empty in a stream event which carries counts and nothing else, "" where
	// the endpoint has no such event.
	Content string
}
