package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
	"modelrelay/workflows"
)

// judge compares the answers that the tasks' clients got with what the upstreams, Temporal, Redis and the store have.
func (c *chaos) judge(planned []*chaosTask) {
	c.T.Helper()
	var tasks []*chaosTask // all that clients asked for
	for _, task := range planned {
		tasks = append(tasks, task)
		if task.heir != nil && task.gone {
			tasks = append(tasks, task.heir)
		}
	}
	c.settled()
	strays := c.adopt(tasks)
	jobs := make(map[string][]stack.Job)
	for _, j := range c.Control.Jobs() {
		jobs[j.Prompt] = append(jobs[j.Prompt], j)
	}
	var (
		ends  = make(map[string]int)
		asked int
	)
	for _, task := range tasks {
		mine := jobs[task.prompt]
		delete(jobs, task.prompt)
		asked += task.asked
		end := task.last.Status
		switch {
		case task.gone:
			end = "deleted"
		case task.id == "":
			end = "not begun"
		case task.last.code() != "":
			end += " " + task.last.code()
		}
		ends[end]++
		c.verdict(task, mine, strays[task.prompt])
	}
	for prompt := range jobs {
		c.wrong("the upstream has a job that nobody asked for: %q", prompt)
	}
	c.T.Logf("%d tasks by %d creates: %v", len(tasks), asked, ends)
	c.notified(tasks)
	c.keys(tasks)
	c.leftovers(tasks)
	for _, p := range c.everRun {
		if said := panics.FindString(p.Out.Text()); said != "" {
			c.wrong("%s panicked:\n%s", p.Name, said)
		}
	}
}

// panics finds the first line of a panic, of the process or one that the SDK caught, with what follows. Task ids may have the
// letters too.
var panics = regexp.MustCompile(`(?i).*(?:\bpanic|fatal error:).*(?:\n.*){0,40}`)

// verdict reports whether the task ended rightly: paid once at most, and for the reason that the upstream has. Strays are
// tasks of the same client whose id it did not get.
func (c *chaos) verdict(task *chaosTask, jobs []stack.Job, strays []string) {
	c.T.Helper()
	bad := func(kind fault, format string, args ...any) {
		c.T.Helper()
		c.bad(kind, "%s ended as %s %s: "+format, append([]any{task, task.last.Status, task.last.code()}, args...)...)
	}
	wrong := func(format string, args ...any) {
		c.T.Helper()
		bad(other, format, args...)
	}
	if len(strays) > 0 {
		// The note of a create that was not answered is in Redis: where that is not certain, the operator gets an error.
		for _, id := range append(strays, task.id) {
			if c.logged("create not recorded", id) {
				c.T.Logf("%s has more tasks, %v, as its operator was told", task, strays)
				return
			}
		}
		bad(twice, "its client made more than one task: %v, %d jobs", strays, len(jobs))
	}
	var paid *stack.Job
	if len(jobs) > 0 {
		paid = &jobs[0]
	}
	looksUp := task.vendor == "generic" // its look-up repeats the create with the same idempotency key
	if len(jobs) > 1 || paid != nil && paid.Submissions > 1 && !looksUp {
		bad(twice, "paid more than once: %+v", jobs)
		return
	}
	if task.id == "" || task.gone {
		if task.id == "" && paid != nil {
			bad(lost, "paid, and there is no task: %+v", jobs)
		}
		return
	}
	if paid != nil && task.image != nil && !looksUp {
		if sum := sha256.Sum256(task.image); paid.InputSHA256 != hex.EncodeToString(sum[:]) {
			bad(wrongBytes, "the upstream has another image")
		}
	}
	switch code := task.last.code(); {
	case task.last.Status == "completed":
		if paid == nil || paid.State != "completed" || task.fate.refused {
			wrong("the upstream has no such video: %+v", jobs)
		} else if got := c.download(task.id); got != paid.SHA256 {
			bad(wrongBytes, "other bytes than the upstream's: %s, want %s", got, paid.SHA256)
		}
	case code == workflows.CodeCancelled:
		if !task.cancel {
			wrong("nobody cancelled it")
		}
	case code == workflows.CodeUpstreamUnknown:
		if looksUp {
			wrong("its upstream could have told")
		}
		if kept := tickets(c.T, c.Archive(), task.id); len(kept) > 0 {
			wrong("its ticket is in the archive: %v", kept)
		}
		if !c.logged("submit outcome unknown", task.id) {
			wrong("no worker told the operator")
		}
	case task.fate.refused:
		if paid != nil {
			wrong("but the upstream took it")
		}
	case task.fate.name == "forgotten":
		if paid == nil || !paid.Forgotten || !strings.Contains(code, "not_found") {
			wrong("not because the upstream forgot it: %+v", jobs)
		}
	case task.fate.model == "fails":
		if paid == nil || paid.State != "failed" || !slices.Contains([]string{"vendor_error", "content_policy"}, code) {
			wrong("not because its job failed: %+v", jobs)
		}
	default:
		wrong("without a reason: %+v", task.last.Error)
	}
}

// download is the SHA-256 of the task's video.
func (c *chaos) download(id string) string {
	c.T.Helper()
	got := c.fronts[0].Call(c.T, stack.Request{Path: "/v1/videos/" + id + "/content", Token: stack.HookToken})
	if got.Status != http.StatusOK {
		c.bad(lost, "download %s: %d", id, got.Status)
	}
	return hexSum(got.Body)
}

// refuseSome is how the receiver of events answers: it wants every sixth request once more, but no event a third time,
// for which it would wait minutes.
func (c *chaos) refuseSome(n int) int {
	all := c.hook.Requests()[:n]
	this := all[n-1].Header.Get("Webhook-Id")
	before := slices.ContainsFunc(all[:n-1], func(h stack.Delivery) bool { return h.Header.Get("Webhook-Id") == this })
	if n%6 == 0 && !before {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// webhooks waits until the webhook of every task has the task's end, and verifies every request that came. The end of a task
// that was deleted may be missing.
func (c *chaos) notified(tasks []*chaosTask) {
	c.T.Helper()
	sdk := openai.NewClient(option.WithAPIKey("unused"), option.WithWebhookSecret(stack.HookSecret))
	took := make(map[string]map[string]string) // types of the events that were taken, by task and event
	seen := 0
	notified := func(task *chaosTask) bool {
		for _, kind := range took[task.id] {
			if task.gone || kind == "video."+task.last.Status {
				return true
			}
		}
		return task.gone || task.id == ""
	}
	defer func() {
		events := 0
		for _, task := range tasks {
			if !notified(task) {
				c.wrong("%s: its end, %s, was not told, but %v", task, task.last, took[task.id])
			}
			if n := len(took[task.id]); n > 1 && !task.is && task.heir == nil {
				c.wrong("%s: its end was told in %d events", task, n)
			}
		}
		for _, one := range took {
			events += len(one)
		}
		c.T.Logf("%d events were sent %d times", events, seen)
	}()
	testwait.Eventually(c.T, "the end of every task is told", stack.CrashTimeout, func() bool {
		all := c.hook.Requests()
		for ; seen < len(all); seen++ {
			one := all[seen]
			if err := sdk.Webhooks.VerifySignatureWithTolerance(one.Body, one.Header, time.Since(c.began)+chaosEnd); err != nil {
				c.wrong("request %d does not verify: %v\n%s", seen+1, err, one.Body)
			}
			var event struct {
				ID, Type string
				Data     struct{ ID string }
			}
			if err := json.Unmarshal(one.Body, &event); err != nil || event.ID != one.Header.Get("Webhook-Id") {
				c.wrong("request %d: %v in %s", seen+1, err, one.Body)
			}
			if c.refuseSome(seen+1) != http.StatusOK {
				continue
			}
			if took[event.Data.ID] == nil {
				took[event.Data.ID] = make(map[string]string)
			}
			took[event.Data.ID][event.ID] = event.Type
		}
		return !slices.ContainsFunc(tasks, func(task *chaosTask) bool { return !notified(task) })
	})
}

// slotsFree is how long after the end of all tasks a slot may be taken whose release was lost.
const slotsFree = 2 * time.Minute

// room checks that no task has left a place taken at the channel with a limit: all of its places are free at once.
func (c *chaos) room() {
	c.T.Helper()
	for i := range chaosJobs {
		c.fronts[0].Create(c.T.Context(), "vendorc-slow", fmt.Sprintf("after the storm %d", i))
	}
	testwait.Eventually(c.T, "the limited channel has room", slotsFree, func() bool {
		n := 0
		for _, j := range c.Control.Jobs() {
			if strings.HasPrefix(j.Prompt, "after the storm") {
				n++
			}
		}
		return n == chaosJobs
	})
}

// logged reports whether a worker wrote a line with all the words.
func (c *chaos) logged(words ...string) bool {
	for _, p := range c.everRun {
		for line := range strings.Lines(p.Out.Text()) {
			found := true
			for _, word := range words {
				found = found && strings.Contains(line, word)
			}
			if found {
				return true
			}
		}
	}
	return false
}
