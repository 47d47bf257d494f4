package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelrelay/dev/e2e/stack"
	"modelrelay/providers/pricing"
	"modelrelay/storage/ledger"
	"modelrelay/storage/testwait"
	"modelrelay/workflows"
)

// moneyTaskers is how many clients wait for a video each, and then ask for the next.
const moneyTaskers = 8

// tasksDone is what clients saw of their tasks.
type tasksDone struct {
	made atomic.Int64

	mu    sync.Mutex
	over  int
	ended map[string]*openai.Video // by prompt
}

// startTasks makes videos in the background, through either gateway, and through the one that lives where the other does
// not answer. Some submits are refused, some are lost on their way back, polls fail, and content breaks off.
func (m *money) startTasks(work *sync.WaitGroup) {
	for _, rule := range []map[string]any{
		{"operation": "video.create", "contains": "please refuse", "action": "status", "status": 400},
		{"operation": "video.create", "contains": "please lose", "action": "drop"},
		{"operation": "video.create", "contains": "please miss", "action": "drop", "accept": false},
		{"operation": "video.create", "contains": "please wait", "action": "status", "status": 429, "key": upstreamKeyOf("studio", 0)},
	} {
		m.s.Control.AddRule(rule)
	}
	for i := range *moneyTasks {
		if prompt := promptOf(i); strings.HasSuffix(prompt, "please stutter") {
			m.s.Control.AddRule(map[string]any{"operation": "video.get", "contains": prompt, "action": "garbage", "times": 1})
			m.s.Control.AddRule(map[string]any{"operation": "video.get", "contains": prompt, "action": "status", "status": 500, "times": 1})
			m.s.Control.AddRule(map[string]any{"operation": "video.content", "contains": prompt, "action": "cut", "bytes": 1000, "times": 1})
		}
	}
	m.tasks.ended = make(map[string]*openai.Video)
	var next atomic.Int64
	for range moneyTaskers {
		work.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= *moneyTasks {
					return
				}
				m.task(i)
				m.permit()
			}
		})
	}
}

// promptOf says what a task is like.
func promptOf(i int) string {
	wishes := []string{"", "", "", "", "please refuse", "please lose", "please miss", "please wait", "please stutter", "please stutter"}
	return fmt.Sprintf("paid %d %s", i, wishes[i%len(wishes)])
}

// task makes a video and waits for its end.
func (m *money) task(i int) {
	random, prompt := m.random(3, i), promptOf(i)
	params := openai.VideoNewParams{
		Prompt: prompt, Model: []openai.VideoModel{"sora-2-fast", "sora-2-pro-fast", "sora-2-fast", "sora-2-fast-fail"}[random.IntN(4)],
		Seconds: []openai.VideoSeconds{"4", "8", "12"}[random.IntN(3)], Size: openai.VideoSize1280x720,
	}
	ctx, cancel := context.WithTimeout(m.t.Context(), moneyTimeout)
	defer cancel()
	id := m.create(ctx, []*stack.Gateway{m.lives, m.doomed}[random.IntN(2)], params)
	if id == "" {
		return
	}
	m.tasks.made.Add(1)
	sdk := m.lives.SDK(option.WithAPIKey("sk-studio"))
	again := time.NewTicker(25 * time.Millisecond)
	defer again.Stop()
	for {
		video, err := sdk.Videos.Get(ctx, id, option.WithQuery("wait", "20"))
		switch {
		case ctx.Err() != nil:
			m.t.Errorf("task %q does not end: %v", prompt, err)
			return
		case err != nil: // a busy machine may be slow to look
			<-again.C
		case video.Status == openai.VideoStatusCompleted, video.Status == openai.VideoStatusFailed:
			m.tasks.mu.Lock()
			m.tasks.ended[prompt] = video
			m.tasks.mu.Unlock()
			return
		}
	}
}

// create makes the video at one gateway, and at the one that lives where that does not answer. A create whose answer is
// lost with its gateway is repeated under its key, and is one task; so is one that a busy machine was too slow for.
func (m *money) create(ctx context.Context, g *stack.Gateway, params openai.VideoNewParams) (id string) {
	again := time.NewTicker(25 * time.Millisecond)
	defer again.Stop()
	for ; ; <-again.C {
		sdk := g.SDK(option.WithAPIKey("sk-studio"), option.WithMaxRetries(0), option.WithHeader("Idempotency-Key", params.Prompt))
		video, err := sdk.Videos.New(ctx, params)
		var refused *openai.Error
		switch {
		case err == nil:
			return video.ID
		case g == m.lives && (!errors.As(err, &refused) || refused.StatusCode != http.StatusServiceUnavailable || ctx.Err() != nil):
			m.t.Errorf("create %q: %v", params.Prompt, err)
			return ""
		}
		g = m.lives
	}
}

// priceOf is what a video of a model and so many seconds costs.
func priceOf(model openai.VideoModel, seconds int64) int64 {
	if model == "sora-2-pro-fast" {
		return proRequest + proVideo + proSecond*seconds
	}
	return videoRequest + videoSecond*seconds
}

// checkTasks compares the ledger with the upstream's jobs.
func (m *money) checkTasks() {
	m.t.Helper()
	jobs := make(map[string][]stack.Job)
	for _, j := range m.s.Control.Jobs() {
		jobs[j.Prompt] = append(jobs[j.Prompt], j)
	}
	want := ledger.Row{Tasks: int64(len(m.tasks.ended))}
	unknown := 0
	for prompt, video := range m.tasks.ended {
		made := jobs[prompt]
		delete(jobs, prompt)
		if len(made) > 1 || len(made) == 1 && made[0].Submissions != 1 {
			m.t.Errorf("%q was submitted more than once: %+v", prompt, made)
			continue
		}
		state, length := "", int64(0)
		if len(made) == 1 {
			state = made[0].State
			var err error
			if length, err = strconv.ParseInt(made[0].Seconds, 10, 64); err != nil {
				m.t.Fatal(err)
			}
		}
		switch {
		case video.Status == openai.VideoStatusCompleted:
			want.Video += time.Duration(length) * time.Second
			want.Cost += priceOf(video.Model, length)
			if state != "completed" {
				m.t.Errorf("%q is completed, its job %q", prompt, state)
			}
		case video.Error.Code == workflows.CodeUpstreamUnknown: // charged, since the upstream may have made it
			asked, err := strconv.ParseInt(string(video.Seconds), 10, 64)
			if err != nil {
				m.t.Fatal(err)
			}
			want.Cost += priceOf(video.Model, asked)
			want.Failed++
			unknown++
		default:
			want.Failed++
			if state == "completed" {
				m.t.Errorf("%q failed with %s, its job is completed", prompt, video.Error.Code)
			}
		}
	}
	for prompt := range jobs {
		m.t.Errorf("the job %q is of no task", prompt)
	}
	testwait.Eventually(m.t, "the tasks are settled", stack.CrashTimeout, func() bool {
		return m.sums("studio").Tasks >= want.Tasks && m.balance("studio").Reserved == 0
	})
	got := m.sums("studio")
	if got != want || m.balance("studio") != (ledger.Balance{Spent: want.Cost}) || want.Tasks != int64(*moneyTasks) {
		m.t.Errorf("tasks: ledger %+v, balance %+v\nmade %+v", got, m.balance("studio"), want)
	}
	left, err := m.budgets.Reservations(m.t.Context(), "studio")
	if err != nil || len(left) > 0 {
		m.t.Errorf("tasks: %d reservations are left, %v", len(left), err)
	}
	if want.Failed == want.Tasks || unknown == 0 && *moneyTasks >= 10 {
		m.t.Errorf("tasks: %d of %d failed, %d unknown: nothing is proven", want.Failed, want.Tasks, unknown)
	}
	m.t.Logf("tasks: %d, %d failed, %d of them unknown and charged, %v of video, %s", want.Tasks, want.Failed, unknown, want.Video,
		pricing.Money(want.Cost))
}
