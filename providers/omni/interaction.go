package omni

import (
	"cmp"
	"encoding/json"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// interaction is the vendor's job.
type interaction struct {
	ID      upstream.Loose  `json:"id"`
	Status  upstream.Loose  `json:"status"`
	Created upstream.Loose  `json:"created"`
	Updated upstream.Loose  `json:"updated"`
	Steps   json.RawMessage `json:"steps"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Errors  json.RawMessage `json:"errors"`
}

// content is one part of a model's output.
type content struct {
	Type upstream.Loose `json:"type"`
	Text upstream.Loose `json:"text"`
	URI  upstream.Loose `json:"uri"`
	Data upstream.Loose `json:"data"`
}

// output returns the parts of the model's output without thoughts.
func (i interaction) output() (parts []content) {
	var steps []struct {
		Type    upstream.Loose  `json:"type"`
		Content json.RawMessage `json:"content"`
	}
	_ = json.Unmarshal(i.Steps, &steps) // errors leave it empty
	for _, step := range steps {
		var list []content
		if step.Type == "model_output" && json.Unmarshal(step.Content, &list) == nil {
			parts = append(parts, list...)
		}
	}
	return parts
}

// video is the one part that is a video and can be read; empty where there is none.
func (i interaction) video() content {
	for _, part := range i.output() {
		if part.Type == "video" && (part.URI != "" || part.Data != "") {
			return part
		}
	}
	return content{}
}

// tokens are those of the input, and those of the video that was made, which the vendor bills.
func (i interaction) tokens() (tokens providers.VideoTokens) {
	var usage struct {
		Input  upstream.Loose `json:"total_input_tokens"`
		Output []struct {
			Modality upstream.Loose `json:"modality"`
			Tokens   upstream.Loose `json:"tokens"`
		} `json:"output_tokens_by_modality"`
	}
	_ = json.Unmarshal(i.Usage, &usage) // errors leave it empty
	tokens.Input = usage.Input.Count()
	for _, one := range usage.Output {
		if one.Modality == "video" {
			tokens.Output += one.Tokens.Count()
		}
	}
	return tokens
}

// billed reports whether video was counted.
func (i interaction) billed() bool { return i.tokens().Output > 0 }

// status maps the vendor's status.
func (i interaction) status(key providers.Secret) (providers.VideoStatus, error) {
	word, video := string(i.Status), i.video()
	failed := func(code, vendorCode, reason string) (providers.VideoStatus, error) {
		return upstream.FailedJob(word, code, vendorCode, reason, false, key), nil
	}
	switch word {
	case "completed": // an answer of another shape than is known may have a video; with words and no tokens it is a refusal
		if words := i.words(); video == (content{}) && !i.billed() && words != "" {
			return failed(providers.FailedContent, "", words)
		}
	case "failed":
		said := i.said()
		return failed(upstream.RPCFailure(said), cmp.Or(said.Status, said.Code), said.Message)
	case "budget_exceeded":
		return failed(providers.FailedQuota, word, "The job took more than the upstream's budget.")
	case "cancelled", "incomplete", "requires_action":
		return failed(providers.FailedVendor, word, "The upstream ended the job.")
	}
	s, err := upstream.States{Queued: "queued", Done: "completed"}.Status(i.Status, []string{string(cmp.Or(video.URI, video.Data))})
	if s.State == providers.JobDone {
		s.Tokens = i.tokens()
		i.times(&s, video.URI != "")
	}
	return s, err
}

// times reads how long a job took and until when its file can be read.
func (i interaction) times(s *providers.VideoStatus, file bool) {
	began, _ := time.Parse(time.RFC3339Nano, string(i.Created)) // errors leave it zero
	ended, err := time.Parse(time.RFC3339Nano, string(i.Updated))
	if err != nil {
		ended = time.Now()
	} else if !began.IsZero() && ended.After(began) {
		s.Took = ended.Sub(began)
	}
	if file {
		s.Dies = ended.Add(fileLife).UTC()
	}
}

// words returns the model's text in place of a video, "" for none.
func (i interaction) words() string {
	for _, part := range i.output() {
		if part.Type == "text" && part.Text != "" {
			return string(part.Text)
		}
	}
	return ""
}

// said is the error of a failed job.
func (i interaction) said() upstream.RPCError {
	var list []json.RawMessage
	if json.Unmarshal(i.Errors, &list) == nil && len(list) > 0 && len(i.Error) == 0 {
		return upstream.ParseRPCError(list[0])
	}
	return upstream.ParseRPCError(i.Error)
}
