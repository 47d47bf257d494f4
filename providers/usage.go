package providers

import "time"

// Usage is what one call consumed.
type Usage struct {
	// Input, Cached and Output are in the vendor's tokens. Cached is the part of Input that the vendor served from its cache.
	Input, Cached, Output int64
	// Images are those made.
	Images int64
	// Audio is the length of the sound that was heard, where the vendor says it.
	Audio time.Duration
}

// UsageShape says where the answers of one endpoint count what was used. Each string but the last is the path of a
// member, its names joined by dots, from the root of the answer or of one stream event's data, with [] behind the name of an array of
// objects. Paths joined by | are one member under several names. A later number of a member, in the same document or a later event,
// replaces an earlier one, unless it is zero. The members of one counter add up. The zero shape counts nothing.
type UsageShape struct {
	Input, Cached, Output []string
	// Seconds are numbers of seconds of audio.
	Seconds []string
	// Answer are paths of the text that names the answer, where a later call may go on from it by that name; none: it may
	// not.
	Answer []string
	// Made are paths of texts that name what else a later call may go on from, with [] behind the name of an array of objects.
	// MadeMark is a text in every event of a stream that has one.
	Made     []string
	MadeMark string
	// Content is the path of the array that is empty in a stream event which carries counts and nothing else, "" where
	// the endpoint has no such event.
	Content string
	// Images is the path of the array of images made. Of a stream, each event that counts tokens made one.
	Images string
	// ImageMark is what stands in an answer, or in an event of it, once for each image made, whatever spaces JSON has
	// there: a member's name and how its text begins.
	ImageMark string
	// FreeMark is a member's name and the brace of its object, such as the arguments of a function call, whose members a model
	// names: no ImageMark counts there. "" for none.
	FreeMark string
	// Ends are marks of which a whole stream has one: a member's name and how its value begins, whatever spaces JSON has there. None: a
	// stream may end anywhere. A stream without them broke off, though its connection ended cleanly.
	Ends []string
	// Turn is how a conversation's turns show, for one that breaks off before its event with the counts; the zero Turn says
	// nothing.
	Turn TurnShape
}

// UsageShapes are those of a format's operations that count anything: of says which an entry of a vendor's table has.
func UsageShapes[T any](format Format, operations map[Operation]T, of func(T) UsageShape) map[Endpoint]UsageShape {
	shapes := make(map[Endpoint]UsageShape)
	for name, operation := range operations {
		if shape := of(operation); len(shape.Input) > 0 {
			shapes[Endpoint{format, name}] = shape
		}
	}
	return shapes
}

// TurnShape says what the events of one turn of a conversation are. Marks are text that stands near the beginning of an
// event.
type TurnShape struct {
	Parts []TurnPart
	// End marks the event that counts the turn's tokens.
	End string
}

// TurnPart is a kind of event that carries a piece of the answer.
type TurnPart struct {
	Marks []string
	// TokenBytes is about how many bytes of such events one token of output takes.
	TokenBytes int64
}
