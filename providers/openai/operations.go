package openai

import "modelrelay/providers"

type operation struct {
	// path follows the channel's base URL.
	path string
	// answers are the media types of an answer that is not streamed; "audio/*" permits every audio type.
	answers []string
	// streams are those of a streamed one; none: the operation does not stream.
	streams []string
	// usage describes the usage in the answer, streamed or not.
	usage providers.UsageShape
	// unasked: no client calls it; calls of other formats are translated to it.
	unasked bool
}

// endsInError is in an event that reports an error.
const endsInError = `"error":{`

const (
	typeJSON   = "application/json"
	typeEvents = "text/event-stream"
)

func operations() map[providers.Operation]operation {
	document, events := []string{typeJSON}, []string{typeEvents}
	// The vendor sends subtitles as plain text; compatible servers have other types for them.
	transcript := []string{typeJSON, "text/plain", "text/vtt", "text/srt", "application/x-subrip"}
	speech := []string{"audio/*", "application/octet-stream"}
	tokens := providers.UsageShape{
		Input:  []string{"usage.input_tokens"},
		Cached: []string{"usage.input_tokens_details.cached_tokens"},
		Output: []string{"usage.output_tokens"},
	}
	completion := providers.UsageShape{
		// Compatible servers: Moonshot has usage in the last chunk's choice and a member for cached tokens; DeepSeek names these otherwise.
		Input: []string{"usage.prompt_tokens|choices[].usage.prompt_tokens"},
		Cached: []string{
			"usage.prompt_tokens_details.cached_tokens|usage.cached_tokens|usage.prompt_cache_hit_tokens|" +
				"choices[].usage.prompt_tokens_details.cached_tokens|choices[].usage.cached_tokens|choices[].usage.prompt_cache_hit_tokens",
		},
		Output:  []string{"usage.completion_tokens|choices[].usage.completion_tokens"},
		Content: "choices",
		// The stream of a compatible server may have a finish_reason and no [DONE].
		Ends: []string{`"finish_reason":"`, "\ndata:[DONE]", "\rdata:[DONE]", endsInError},
	}
	images, sound, spoken := tokens, tokens, tokens
	images.Images = "data"
	images.Ends = []string{`"type":"image_generation.completed"`, `"type":"image_edit.completed"`, endsInError}
	sound.Ends = []string{`"type":"transcript.text.done"`, endsInError}
	spoken.Ends = []string{`"type":"speech.audio.done"`, endsInError}
	sound.Seconds = []string{"usage.seconds"} // of models that are charged by the length
	return map[providers.Operation]operation{
		providers.Chat:        {path: "/chat/completions", answers: document, streams: events, usage: completion},
		providers.Completions: {path: "/completions", answers: document, streams: events, usage: completion},
		providers.Responses: {
			path: "/responses", answers: document, streams: events,
			// A stream's last event contains the whole response.
			usage: providers.UsageShape{
				Input:  []string{"usage.input_tokens|response.usage.input_tokens"},
				Cached: []string{"usage.input_tokens_details.cached_tokens|response.usage.input_tokens_details.cached_tokens"},
				Output: []string{"usage.output_tokens|response.usage.output_tokens"},
				Answer: []string{"id", "response.id"},
				// A later call may refer to an item, or to the container of a code interpreter.
				Created: []string{
					"output[].id", "output[].container_id", "output[].content[].annotations[].container_id",
					"item.id", "item.container_id", "item.content[].annotations[].container_id",
					"response.output[].id", "response.output[].container_id", "response.output[].content[].annotations[].container_id",
				},
				CreatedMark: `"item":`,
				Ends:        []string{`"type":"response.completed"`, `"type":"response.incomplete"`, `"type":"response.failed"`, `"type":"error"`},
			},
		},
		providers.InputTokens:     {path: "/responses/input_tokens", answers: document, unasked: true},
		providers.CompactResponse: {path: "/responses/compact", answers: document, usage: tokens},
		providers.Embeddings: {
			path: "/embeddings", answers: document,
			usage: providers.UsageShape{Input: []string{"usage.prompt_tokens"}},
		},
		providers.ImageGeneration: {path: "/images/generations", answers: document, streams: eventsOr(document), usage: images},
		providers.ImageEdit:       {path: "/images/edits", answers: document, streams: eventsOr(document), usage: images},
		providers.Transcriptions:  {path: "/audio/transcriptions", answers: transcript, streams: eventsOr(transcript), usage: sound},
		providers.Translations:    {path: "/audio/translations", answers: transcript, usage: sound},
		providers.Speech:          {path: "/audio/speech", answers: speech, streams: eventsOr(speech), usage: spoken},
		providers.Rerank: {
			path: "/rerank", answers: document,
			// Not OpenAI's own: the shape of compatible servers, which is that of Jina.
			usage: providers.UsageShape{Input: []string{"usage.total_tokens"}},
		},
		providers.Moderations: {path: "/moderations", answers: document},
	}
}

// eventsOr returns the media types of a streamed answer from models of which some cannot stream and answer with a document. The document is
// usable and billed, so it is not a fault of the channel.
func eventsOr(answers []string) []string { return append([]string{typeEvents}, answers...) }
