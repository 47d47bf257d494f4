package gemini

// The bodies of the Gemini format. They are never filled: the schemas and the field checks are compiled from them.

type geminiGenerate struct {
	Contents         []geminiContent        `json:"contents" nullable:"false" doc:"Conversation turns"`
	GenerationConfig geminiGenerationConfig `json:"generationConfig,omitzero" doc:"Optional: the vendor's SDKs may omit it"`
}

type geminiContent struct {
	Role  string       `json:"role,omitempty" doc:"user or model"`
	Parts []geminiPart `json:"parts,omitempty" nullable:"false"`
}

type geminiPart struct {
	Text string `json:"text,omitempty"`
}

type geminiGenerationConfig struct {
	ResponseModalities []string          `json:"responseModalities,omitempty" nullable:"false" enum:"TEXT,IMAGE,AUDIO,VIDEO,Text,Image,MODALITY_UNSPECIFIED" doc:"TEXT and IMAGE are used"`
	ImageConfig        geminiImageConfig `json:"imageConfig,omitzero"`
}

type geminiImageConfig struct {
	AspectRatio string `json:"aspectRatio,omitempty" doc:"Form <w>:<h>"`
	ImageSize   string `json:"imageSize,omitempty"`
}

type geminiCount struct {
	Contents []geminiContent `json:"contents,omitempty" nullable:"false" doc:"Conversation turns, unless there is a generateContentRequest"`
	Request  geminiCounted   `json:"generateContentRequest,omitzero" doc:"A whole request to count"`
}

type geminiCounted struct {
	Model    string          `json:"model,omitempty" doc:"models/ and the model id of the path"`
	Contents []geminiContent `json:"contents,omitempty" nullable:"false"`
}

type geminiEmbed struct {
	Model   string        `json:"model,omitempty" doc:"models/ and the model id of the path"`
	Content geminiContent `json:"content" doc:"What to embed"`
}

type geminiBatchEmbed struct {
	Requests []geminiEmbed `json:"requests" nullable:"false"`
}
