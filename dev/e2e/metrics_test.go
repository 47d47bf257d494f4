package e2e_test

import (
	"io"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

// TestMetrics: after a chat, a stream, a call that no upstream took, and a video, the counts are what happened, and the
// dashboard and the alerts of the compose stack read nothing else.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := stack.Shared(t)
	options := stack.WithReceiver(stack.NewReceiver(t, nil).URL)
	options.Channels = s.Channel("main", "sk-upstream-main", "    max_jobs: 5\n") +
		"  - {name: dead, vendor: openai, base_url: \"http://127.0.0.1:1\", keys: [k], models: {lost: }}\n" +
		"prices: {gpt-4o: {input: 1, output: 2}}\n"
	g := s.StartGateway(options)
	sdk := g.SDK(option.WithMaxRetries(0), option.WithAPIKey(stack.HookToken))
	params := openai.ChatCompletionNewParams{
		Model: "gpt-4o", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Say hello to the harbour.")},
	}
	answer, err := sdk.Chat.Completions.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	stream := sdk.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{
		Model: params.Model, Messages: params.Messages, StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	})
	var streamed openai.CompletionUsage
	for stream.Next() {
		if usage := stream.Current().Usage; usage.TotalTokens > 0 {
			streamed = usage
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := sdk.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: "lost", Messages: params.Messages}); err == nil {
		t.Fatal("a dead upstream answered")
	}
	video := g.Create(t.Context(), "sora-2-fast", "a metric of a cat", option.WithAPIKey(stack.HookToken))
	testwait.Eventually(t, "the video is there", stack.DeliveryTimeout, func() bool {
		last, err := sdk.Videos.Get(t.Context(), video.ID)
		return err == nil && last.Status == openai.VideoStatusCompleted
	})
	content, err := sdk.Videos.DownloadContent(t.Context(), video.ID, openai.VideoDownloadContentParams{})
	if err != nil {
		t.Fatal(err)
	}
	size, err := io.Copy(io.Discard, content.Body)
	if err != nil {
		t.Fatal(err)
	}
	content.Body.Close()

	var got stack.Samples
	testwait.Eventually(t, "the webhook is counted", stack.DeliveryTimeout, func() bool {
		got = g.Metrics(t.Context())
		told, _ := got.Sum("gateway_webhook_deliveries_total", "outcome", "delivered")
		ended, _ := got.Sum("gateway_tasks_ended_total", "state", "completed")
		_, counted := got.Sum("gateway_tasks_unfinished")
		return told > 0 && ended > 0 && counted > 0
	})
	for _, want := range []struct {
		value  float64
		name   string
		labels []string
	}{
		{
			2, "gen_ai_client_operation_duration_seconds_count",
			[]string{"gen_ai_operation_name", "chat", "gen_ai_request_model", "gpt-4o", "gen_ai_provider_name", "openai"},
		},
		{1, "gen_ai_client_operation_time_to_first_chunk_seconds_count", []string{"gen_ai_request_model", "gpt-4o"}},
		{float64(answer.Usage.PromptTokens + streamed.PromptTokens), "gen_ai_client_token_usage_sum", []string{"gen_ai_token_type", "input"}},
		{
			float64(answer.Usage.CompletionTokens + streamed.CompletionTokens), "gen_ai_client_token_usage_sum",
			[]string{"gen_ai_token_type", "output"},
		},
		{2, "http_server_request_duration_seconds_count", []string{"http_route", "/v1/chat/completions", "http_response_status_code", "200"}},
		{1, "http_server_request_duration_seconds_count", []string{"http_route", "/v1/chat/completions", "error_type", "upstream"}},
		{1, "gen_ai_client_operation_duration_seconds_count", []string{"gen_ai_request_model", "lost", "error_type", "upstream"}},
		{1, "gateway_attempts_total", []string{"channel", "dead", "outcome", "upstream"}},
		{1, "gateway_model_channels_available", []string{"model", "lost"}},
		{1, "http_server_request_duration_seconds_count", []string{"http_route", "/v1/videos", "http_request_method", "POST"}},
		{2, "gateway_attempts_total", []string{"channel", "main", "outcome", "ok", "again", "false"}},
		{1, "gateway_tasks_created_total", []string{"model", "sora-2-fast"}},
		{1, "gateway_task_submits_total", []string{"channel", "main", "outcome", "accepted"}},
		{0, "gateway_task_submits_total", []string{"channel", "main", "outcome", "unknown"}},
		{1, "gateway_task_polls_total", []string{"channel", "main", "outcome", "done"}},
		{1, "gateway_task_archives_total", []string{"channel", "main", "outcome", "ok"}},
		{float64(size), "gateway_task_archived_bytes_total", []string{"channel", "main"}},
		{1, "gateway_task_archive_duration_seconds_count", nil},
		{1, "gateway_tasks_ended_total", []string{"state", "completed"}},
		{0, "gateway_tasks_ended_total", []string{"state", "failed"}},
		{1, "gateway_task_duration_seconds_count", []string{"model", "sora-2-fast", "state", "completed"}},
		{1, "gateway_webhook_deliveries_total", []string{"outcome", "delivered"}},
		{0, "gateway_webhook_deliveries_total", []string{"outcome", "given_up"}},
		{1, "gateway_channel_state", []string{"channel", "main", "state", "closed"}},
		{0, "gateway_redis_away", nil},
		{0, "gateway_redis_write_failures_total", nil},
	} {
		if value, found := got.Sum(want.name, want.labels...); found == 0 || value != want.value {
			t.Errorf("%s %v: got %v in %d series, want %v", want.name, want.labels, value, found, want.value)
		}
	}
	for _, name := range []string{ // counted once a minute, so the current value is not known
		"gateway_channel_jobs", "gateway_channel_queue", "gateway_tasks_unfinished", "gateway_tasks_stuck", "gateway_task_workers",
	} {
		if _, found := got.Sum(name); found == 0 {
			t.Errorf("%s is missing", name)
		}
	}
	for _, name := range []string{"temporal_request_total", "temporal_num_pollers", "temporal_activity_execution_latency_seconds_count"} {
		if value, found := got.Sum(name); found == 0 || value == 0 {
			t.Errorf("%s: got %v in %d series, want the SDK's own", name, value, found)
		}
	}
	for _, s := range got {
		for name, value := range s.Labels {
			if strings.Contains(value, "sk-") || strings.Contains(value, video.ID) || strings.Contains(value, "hooked") {
				t.Errorf("a label says too much: %s %s=%q", s.Name, name, value)
			}
		}
	}
	t.Logf("%d series", len(got))
	wantExported(t, got)
}
