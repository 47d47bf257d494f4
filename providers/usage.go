package providers

import "time"

// Usage is what one call consumed.
type Usage struct {
	// Input, Cached and Output are in the vendor's tokens. Cached is the part of Input from the vendor's cache.
	Input, Cached, Output int64
	// Images is the number of images made.
	Images int64
	// Audio is the length of the input audio, if the vendor reports it.
	Audio time.Duration
}

// UsageShape describes where the answers of one endpoint contain usage. Most strings are the path of a member: its
// names joined by dots, from the root of the answer or of one stream event's data, with [] after the name of an array of objects.
// Paths joined by | are one member under several names. A later number of a member, in the same document or a later event, replaces
// an earlier one, unless it is zero. The members of one counter add up. The zero shape counts nothing.
type UsageShape struct {
	Input, Cached, Output []string
	// Seconds are lengths of audio in seconds.
	Seconds []string
	// Answer are paths of the answer's id, if a later call may continue the answer by its id; none: it may not.
	Answer []string
	// Created are paths of other ids that a later call may continue. CreatedMark is a text in every stream event that has one.
	Created     []string
	CreatedMark string
	// Content is the path of the array that is empty in a stream event with nothing but usage, "" if the endpoint has no such event.
	Content string
	// Images is the path of the array of images. In a stream, each event with tokens made one image.
	Images string
	// MediaTypes are the paths of media types with one last name. Each type of an image counts an image.
	MediaTypes []string
	// Ends are marks of which a complete stream has one: a member's name and the beginning of its value, with any JSON white space.
	// None: a stream may end anywhere. A stream without them is incomplete, even if its connection ended cleanly.
	Ends []string
	// Turn describes the turns of a conversation, for one that ends before its usage event; the zero Turn counts nothing.
	Turn TurnShape
}

// UsageShapes returns the shapes of a format's operations that count anything. of returns the shape of an entry in a vendor's table.
func UsageShapes[T any](format Format, operations map[Operation]T, of func(T) UsageShape) map[Endpoint]UsageShape {
	shapes := make(map[Endpoint]UsageShape)
	for name, operation := range operations {
		if shape := of(operation); len(shape.Input) > 0 {
			shapes[Endpoint{format, name}] = shape
		}
	}
	return shapes
}

// TurnShape describes the events of one turn of a conversation. Marks are texts near the beginning of an event.
type TurnShape struct {
	Parts []TurnPart
	// End marks the event with the turn's tokens.
	End string
}

// TurnPart is a kind of event with a part of the answer.
type TurnPart struct {
	Marks []string
	// TokenBytes is the approximate size of such events for each output token, in bytes.
	TokenBytes int64
}
