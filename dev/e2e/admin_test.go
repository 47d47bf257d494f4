package e2e_test

import (
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

// TestAdmin makes a token over /admin, works with it, changes what it may do, and ends it; a second gateway follows.
func TestAdmin(t *testing.T) {
	t.Parallel()
	s := stack.Shared(t)
	g := s.StartGateway(stack.GatewayOptions{AdminKey: stack.AdminKey})
	second := s.StartGateway(stack.GatewayOptions{AdminKey: stack.AdminKey, Args: []string{"serve", "--worker=false"}})

	var made struct{ ID, Key string }
	if status, text := g.Admin("POST", "/admin/tokens", `{"name":"app","models":["gpt-*","sora-2-fast"]}`, &made); status != 201 {
		t.Fatalf("create: %d %s", status, text)
	}
	sdk := func(at *stack.Gateway) openai.Client {
		return at.SDK(option.WithAPIKey(made.Key), option.WithMaxRetries(0))
	}
	chat := func(at *stack.Gateway) error {
		client := sdk(at)
		_, err := client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
			Model: "gpt-4o", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")},
		})
		return err
	}
	models := func(at *stack.Gateway) string {
		client := sdk(at)
		page, err := client.Models.List(t.Context())
		if err != nil {
			return err.Error()
		}
		var names []string
		for _, model := range page.Data {
			names = append(names, model.ID)
		}
		return strings.Join(names, " ")
	}
	if err := chat(g); err != nil {
		t.Fatalf("chat: %v", err)
	}
	if err := chat(second); err != nil {
		t.Fatalf("chat at the second gateway: %v", err)
	}
	if got := models(g); got != "gpt-4o sora-2-fast" {
		t.Errorf("models: %s", got)
	}
	client := sdk(g)
	video, err := client.Videos.New(t.Context(), openai.VideoNewParams{Prompt: "made by app", Model: "sora-2-fast"})
	if err != nil {
		t.Fatal(err)
	}

	// What it may do changes everywhere within a second.
	if status, text := g.Admin("PATCH", "/admin/tokens/app", `{"models":["sora-*"],"operations":["video"]}`, nil); status != 200 {
		t.Fatalf("change: %d %s", status, text)
	}
	if err := chat(g); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("chat after the change: %v", err)
	}
	testwait.Eventually(t, "the second gateway follows", stack.TaskTimeout,
		func() bool { return strings.HasPrefix(models(second), "sora-2 ") })
	if got := models(second); strings.Contains(got, "gpt") || got != models(g) {
		t.Errorf("models there: %s; here: %s", got, models(g))
	}

	var tasks struct {
		Data []struct{ ID, Phase, Token string }
	}
	testwait.Eventually(t, "its task is listed as completed", stack.TaskTimeout, func() bool {
		status, text := g.Admin("GET", "/admin/tasks?token=app&state=completed", "", &tasks)
		if status != 200 {
			t.Fatalf("tasks: %d %s", status, text)
		}
		return len(tasks.Data) == 1 && tasks.Data[0].ID == video.ID && tasks.Data[0].Token == made.ID
	})
	var story struct {
		State    string
		Attempts []any
		Outputs  []any
	}
	if status, text := g.Admin("GET", "/admin/tasks/"+video.ID, "", &story); status != 200 || story.State != "completed" ||
		len(story.Attempts) != 1 || len(story.Outputs) != 1 {
		t.Errorf("show: %d %s", status, text)
	}
	if status, text := g.Admin("POST", "/admin/tasks/"+video.ID+"/cancel", "", nil); status != 409 || !strings.Contains(text, "has ended") {
		t.Errorf("cancel of what has ended: %d %s", status, text)
	}
	if status, text := g.Admin("GET", "/admin/tasks/video_nobody", "", nil); status != 404 {
		t.Errorf("show of no task: %d %s", status, text)
	}

	var usage struct {
		Data []struct {
			Model    string
			Requests int
			Output   int `json:"output_tokens"`
		}
	}
	testwait.Eventually(t, "its two calls are in the ledger", stack.TaskTimeout, func() bool {
		status, text := g.Admin("GET", "/admin/usage?token=app&group_by=model&model=gpt-4o", "", &usage)
		if status != 200 {
			t.Fatalf("usage: %d %s", status, text)
		}
		return len(usage.Data) == 1 && usage.Data[0].Requests == 2 && usage.Data[0].Output > 0
	})
	status, text := g.Admin("GET", "/admin/usage?token=app&group_by=token,model&format=csv", "", nil)
	if status != 200 || !strings.HasPrefix(text, "token,model,requests,") || !strings.Contains(text, made.ID+",gpt-4o,2,") {
		t.Errorf("usage as a table: %d\n%s", status, text)
	}
	if status, text := g.Admin("GET", "/admin/channels", "", nil); status != 200 || !strings.Contains(text, `"name":"main"`) ||
		strings.Contains(text, "sk-upstream") {
		t.Errorf("channels: %d %s", status, text)
	}

	if status, text := second.Admin("DELETE", "/admin/tokens/"+made.ID, "", nil); status != 200 ||
		!strings.Contains(text, `"state":"revoked"`) {
		t.Errorf("revoke: %d %s", status, text)
	}
	testwait.Eventually(t, "the revocation is known here", stack.TaskTimeout, func() bool { return strings.Contains(models(g), "401") })
	for _, secret := range []string{made.Key, stack.AdminKey} {
		if strings.Contains(g.Out.Text(), secret) || strings.Contains(second.Out.Text(), secret) {
			t.Errorf("a log tells %q", secret)
		}
	}
}
