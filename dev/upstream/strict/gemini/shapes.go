// Package gemini holds what generateContent, countTokens and the embeddings of the Gemini API refuse, and in which words. Shapes are those
// that google.golang.org/genai v1.77.0 sends to it; the rules are at https://ai.google.dev/api/generate-content,
// https://ai.google.dev/gemini-api/docs/function-calling and the pages named next to them.
package gemini

import (
	"maps"
	"strings"

	"modelrelay/dev/upstream/strict"
)

type fields = map[string]*strict.Shape

// some is a repeated field: a list, or one of its items.
func some(items *strict.Shape) *strict.Shape {
	return &strict.Shape{Kind: strict.Array, Nullable: true, Items: items, Or: items}
}

func obj(f fields) *strict.Shape {
	return &strict.Shape{Kind: strict.Object, Nullable: true, Fields: f}
}

func of(kind strict.Kind) *strict.Shape { return &strict.Shape{Kind: kind, Nullable: true} }

// number takes what the vendor's JSON reader takes for one: a string of digits as well.
func number() *strict.Shape {
	return &strict.Shape{Kind: strict.Number, Nullable: true, Or: of(strict.String)}
}

func words(list ...string) *strict.Shape {
	return &strict.Shape{Kind: strict.String, Nullable: true, Enum: list}
}

// openAPI is the language of parameters and responseSchema, https://ai.google.dev/api/caching#Schema: no JSON Schema.
func openAPI() *strict.Shape {
	s := obj(nil)
	text := of(strict.String)
	types := []string{"TYPE_UNSPECIFIED"}
	for _, t := range []string{"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"} {
		types = append(types, t, strings.ToLower(t))
	}
	s.Fields = fields{
		"type": words(types...), "format": text, "title": text, "description": text, "nullable": of(strict.Bool), "enum": some(text),
		"maxItems": number(), "minItems": number(), "properties": {Kind: strict.Object, Nullable: true, Values: s}, "required": some(text),
		"minProperties": number(), "maxProperties": number(), "minLength": number(), "maxLength": number(), "pattern": text, "example": {},
		"anyOf": some(s), "propertyOrdering": some(text), "default": {}, "items": s, "minimum": number(), "maximum": number(),
	}
	return s
}

func blob() *strict.Shape {
	text := of(strict.String)
	return obj(fields{"mimeType": text, "data": text, "displayName": text})
}

func file() *strict.Shape {
	text := of(strict.String)
	return obj(fields{"mimeType": text, "fileUri": text, "displayName": text})
}

func content() *strict.Shape {
	text := of(strict.String)
	return obj(fields{"role": text, "parts": some(obj(fields{
		"text": text, "thought": of(strict.Bool), "thoughtSignature": text, "inlineData": blob(), "fileData": file(),
		"functionCall": obj(fields{"id": text, "name": text, "args": of(strict.Object), "partialArgs": {}, "willContinue": {}}),
		"functionResponse": obj(fields{
			"id": text, "name": text, "response": of(strict.Object), "willContinue": {}, "scheduling": {},
			"parts": some(obj(fields{"inlineData": blob(), "fileData": file()})),
		}),
		"executableCode": {}, "codeExecutionResult": {}, "videoMetadata": {}, "mediaResolution": {}, "toolCall": {}, "toolResponse": {},
		"partMetadata": {}, "audioTranscription": {}, "mediaProcessing": {}, "speechMetadata": {},
	}))})
}

func generateShape() *strict.Shape {
	text, schema := of(strict.String), openAPI()
	return obj(fields{
		"model": text, "contents": some(content()), "systemInstruction": content(), "cachedContent": text, "safetySettings": {},
		"serviceTier": {}, "store": {},
		"tools": some(obj(fields{
			"functionDeclarations": some(obj(fields{
				"name": text, "description": text, "behavior": text, "parameters": schema, "parametersJsonSchema": {}, "response": schema,
				"responseJsonSchema": {},
			})),
			"googleSearch": {}, "googleSearchRetrieval": {}, "codeExecution": {}, "urlContext": {}, "computerUse": {}, "fileSearch": {},
			"googleMaps": {}, "mcpServers": {},
		})),
		"toolConfig": obj(fields{
			"functionCallingConfig": obj(fields{
				"mode":                 words("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"),
				"allowedFunctionNames": some(text),
			}),
			"retrievalConfig": {}, "includeServerSideToolInvocations": {},
		}),
		"generationConfig": obj(fields{
			"stopSequences": some(text), "responseMimeType": text, "responseSchema": schema, "responseJsonSchema": {}, "candidateCount": number(),
			"responseModalities": some(words("TEXT", "IMAGE", "AUDIO", "MODALITY_UNSPECIFIED")), "maxOutputTokens": number(),
			"temperature": number(),
			"topP":        number(), "topK": number(), "seed": number(), "presencePenalty": number(), "frequencyPenalty": number(),
			"responseLogprobs": of(strict.Bool),
			"logprobs":         number(), "enableEnhancedCivicAnswers": {}, "speechConfig": {}, "imageConfig": {}, "mediaResolution": text,
			"responseFormat":    {},
			"translationConfig": {}, "audioTranscriptionConfig": {},
			"thinkingConfig": obj(fields{
				"includeThoughts": of(strict.Bool), "thinkingBudget": number(),
				// In small letters too: https://ai.google.dev/gemini-api/docs/thinking#thinking-levels, and @ai-sdk/google sends them so.
				"thinkingLevel": words("THINKING_LEVEL_UNSPECIFIED", "MINIMAL", "LOW", "MEDIUM", "HIGH", "minimal", "low", "medium", "high"),
			}),
		}),
	})
}

func countShape() *strict.Shape {
	return obj(fields{"model": of(strict.String), "contents": some(content()), "generateContentRequest": generateShape()})
}

func embedShape() *strict.Shape {
	text := of(strict.String)
	return obj(fields{
		"model": text, "content": content(), "title": text, "outputDimensionality": number(), "embedContentConfig": {},
		"taskType": words("TASK_TYPE_UNSPECIFIED", "RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT", "SEMANTIC_SIMILARITY", "CLASSIFICATION", "CLUSTERING",
			"QUESTION_ANSWERING", "FACT_VERIFICATION", "CODE_RETRIEVAL_QUERY"),
	})
}

func batchShape() *strict.Shape { return obj(fields{"requests": some(embedShape())}) }

// normal returns a value as the vendor reads it: names in camel case where they came in snake case, and lists where one item stood for
// them. changed reports whether it is another.
func normal(s *strict.Shape, v any) (out any, changed bool) {
	switch v := v.(type) {
	case []any:
		if s == nil || s.Items == nil {
			return v, false
		}
		list := make([]any, len(v))
		for i := range v {
			var other bool
			list[i], other = normal(s.Items, v[i])
			changed = changed || other
		}
		return list, changed
	case map[string]any:
		switch {
		case s == nil:
			return v, false
		case s.Kind == strict.Array && s.Items != nil:
			one, _ := normal(s.Items, v)
			return []any{one}, true
		case s.Values != nil:
			group := maps.Clone(v)
			for name := range v {
				var other bool
				group[name], other = normal(s.Values, v[name])
				changed = changed || other
			}
			return group, changed
		case s.Fields == nil:
			return v, false
		}
		object := make(map[string]any, len(v))
		for name := range v {
			own := name
			if s.Fields[own] == nil && s.Fields[camel(name)] != nil {
				own, changed = camel(name), true
			}
			var other bool
			object[own], other = normal(s.Fields[own], v[name])
			changed = changed || other
		}
		return object, changed
	}
	return v, false
}

func camel(name string) string {
	parts := strings.Split(name, "_")
	for i := 1; i < len(parts); i++ {
		if parts[i] != "" {
			parts[i] = strings.ToUpper(parts[i][:1]) + parts[i][1:]
		}
	}
	return strings.Join(parts, "")
}

// snake is how the vendor names a field in an error.
func snake(name string) string {
	var b strings.Builder
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}
