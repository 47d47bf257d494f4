package anthropic_test

import (
	"slices"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/anthropic"
	"modelrelay/providers/relay/usage"
)

// TestFilesOfCode: the files that code wrote in its container belong to the answer, like the container. The results' shapes are those of
// the tool versions code_execution_20250522 and code_execution_20250825 in the vendor's Go SDK.
func TestFilesOfCode(t *testing.T) {
	t.Parallel()
	const (
		python = `{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"code_execution_result","stdout":"\"file_id\":\"no\"","content":[{"type":"code_execution_output","file_id":"file_1"}]}}`
		bash   = `{"type":"bash_code_execution_tool_result","content":{"type":"bash_code_execution_result","content":[{"type":"bash_code_execution_output","file_id":"file_2"},{"file_id":"file_3"}]}}`
		text   = `{"type":"text","text":"\"file_id\":\"no\"","file_id":"no"}`
		call   = `{"type":"tool_use","id":"toolu_1","input":{"content":[{"file_id":"no"}]}}`
	)
	for name, stream := range map[string]bool{
		`{"id":"msg_1","content":[` + text + `,` + call + `,` + python + `,` + bash +
			`],"container":{"id":"container_1"},"usage":{"input_tokens":1,"output_tokens":2}}`: false,
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"content_block\":" + text + "}\n\n" +
			"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"content_block\":" + python + "}\n\n" +
			"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"content_block\":" + bash + "}\n\n" +
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"container\":{\"id\":\"container_1\"}},\"usage\":{\"output_tokens\":2}}\n\n": true,
	} {
		shape := usage.Compile(anthropic.Usage()[providers.Endpoint{Format: providers.Anthropic, Operation: providers.Messages}])
		for _, piece := range []int{1, 100, len(name)} {
			var found []string
			scanner := usage.NewScanner(shape, stream)
			scanner.Find(func(id string) { found = append(found, id) })
			for part := range slices.Chunk([]byte(name), piece) {
				scanner.Observe(part)
			}
			scanner.End()
			slices.Sort(found)
			if want := []string{"container_1", "file_1", "file_2", "file_3"}; !slices.Equal(found, want) {
				t.Errorf("stream %v in pieces of %d: got %v, want %v", stream, piece, found, want)
			}
		}
	}
}
