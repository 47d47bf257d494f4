package e2e_test

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
)

// chaosJobs is how many jobs vendor C's channel has room for.
const chaosJobs = 8

// fate is what befalls a task at its upstream, by a mark in its prompt.
type fate struct {
	name  string
	model string           // instead of a plain one
	rules []map[string]any // of the upstream, for prompts with the mark
	// refused: the upstream surely does not take the job. unsure: it may have, but its answer is of no use.
	refused, unsure bool
}

func (f fate) mark() string { return "[" + f.name + "]" }

// lookUps is how many creates in all of tasks whose upstream can be asked again are spoiled: more than once each, but not
// often, since the waits between grow.
const lookUps = 4

func fates() []fate {
	all := []fate{
		{name: "plain"},
		{name: "answered late", rules: on("create", map[string]any{"action": "delay", "ms": 1500, "accept": true})},
		{name: "plain"},
		{name: "dropped", unsure: true, rules: onCreates(map[string]any{"action": "drop"})},
		{name: "polls fail", rules: on("get", map[string]any{"action": "status", "status": 500, "times": 25})},
		{name: "busy", rules: on("create", map[string]any{
			"action": "status", "status": 429, "times": 10,
			"headers": map[string]string{"Retry-After": "1"},
		})},
		{name: "plain"},
		{name: "garbled", unsure: true, rules: onCreates(map[string]any{"action": "garbage"})},
		{name: "polls garbled", rules: on("get", map[string]any{"action": "garbage", "times": 25})},
		{name: "refused", refused: true, rules: on("create", map[string]any{"action": "status", "status": 400})},
		{name: "plain"},
		{name: "polls late", rules: on("get", map[string]any{"action": "delay", "ms": 1000, "times": 25})},
		{name: "broken", unsure: true, rules: onCreates(map[string]any{"action": "status", "status": 500})},
		{name: "content cut", rules: on("content", map[string]any{"action": "cut", "bytes": 1000, "times": 10})},
		{name: "fails", model: "fails"},
		{name: "forgotten", rules: on("get", map[string]any{"action": "job_forget"})},
		{name: "content fails", rules: on("content", map[string]any{"action": "status", "status": 500, "times": 10})},
		{name: "polls dropped", rules: on("get", map[string]any{"action": "drop", "times": 25})},
	}
	for _, fate := range all {
		for _, rule := range fate.rules {
			rule["contains"] = fate.mark()
		}
	}
	return all
}

// on makes a rule for an operation on tasks.
func on(operation string, rule map[string]any) []map[string]any {
	rule["operation"] = "video." + operation
	return []map[string]any{rule}
}

// onCreates spoils every create, but those of the vendor that can be asked again only for a while.
func onCreates(rule map[string]any) []map[string]any {
	var rules []map[string]any
	for _, vendor := range chaosVendors() {
		one := maps.Clone(rule)
		one["operation"], one["vendor"] = "video.create", vendor
		if vendor == "generic" {
			one["times"] = lookUps
		}
		rules = append(rules, one)
	}
	return rules
}

// chaosModels are the public names of each vendor's models, made of its name and what they do, with the upstream's.
func chaosModels(vendor string) string {
	prefix := map[string]string{"openai": "sora-2-", "vendorc": "jimeng_", "generic": "video-"}[vendor]
	var b strings.Builder
	for name, ending := range map[string]string{"fast": "fast", "slow": "5s", "fails": "fast-fail"} {
		if vendor == "vendorc" {
			ending = strings.ReplaceAll(ending, "-", "_")
		}
		fmt.Fprintf(&b, "%s-%s: %s%s, ", vendor, name, prefix, ending)
	}
	return b.String()
}

// chaosVendors are the adapters.
func chaosVendors() []string { return []string{"openai", "vendorc", "generic"} }

func (c *chaos) chaosChannels() string {
	channel := func(name, vendor, path, key string) string {
		limit := 0
		if vendor == "vendorc" {
			limit = chaosJobs
		}
		return fmt.Sprintf("  - {name: %s, vendor: %s, base_url: 'http://%s/%s', keys: ['%s'], models: {%s}, groups: [default], max_jobs: %d}\n",
			name, vendor, c.UpstreamAt, path, key, chaosModels(vendor), limit)
	}
	return channel("main", "openai", "openai/v1", "sk-upstream-main") + channel("spare", "openai", "openai/v1", "sk-upstream-spare") +
		channel("visual", "vendorc", "vendorc", "ak-upstream-visual:sk-upstream-visual") +
		channel("chained", "generic", "generic/v1", "sk-upstream-chained")
}

// custom is how a client protects itself from paying twice.
type custom int

const (
	// keyed clients send an idempotency key and repeat whatever was not answered.
	keyed custom = iota
	// marking clients are SDKs: they have no key, and say of a repeat that it is one.
	marking
	// plain clients have no key and set no header. They retry when the answer asks for it, and leave when there is no answer.
	plain
)

func (k custom) String() string { return [...]string{"keyed", "marking", "plain"}[k] }

// removal is when a client deletes its task, if it does.
type removal int

const (
	kept removal = iota
	deletedUnderWay
	deletedAtEnd
)

// chaosTask is one task and its client.
type chaosTask struct {
	number         int
	fate           fate
	custom         custom
	vendor, format string
	model, prompt  string
	key            string // of a keyed client
	image          []byte // sent along; nil for none
	cancel         bool   // its client calls it off, sooner or later
	removal        removal
	heir           *chaosTask // made with the same key once this one was deleted; nil for none
	is             bool       // an heir

	id     string // "" where its client left without an answer
	asked  int    // creates sent
	lost   int    // those of them with no answer, or a 5xx: they may have left something behind
	last   sighting
	called bool // the cancel was answered
	gone   bool // the delete was answered
}

func (t *chaosTask) String() string {
	return fmt.Sprintf("%s (%s, %s over %s, %s)", t.prompt, t.custom, t.format, t.vendor, t.id)
}

// home is the gateway that the task's client reads: another process may answer from a look of a second ago.
func (t *chaosTask) home() int { return t.number % 2 }

// sighting is what every read of a task says.
type sighting struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Progress int    `json:"progress"`
	Prompt   string `json:"prompt"`
	Error    *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func (s sighting) ended() bool { return s.Status == "completed" || s.Status == "failed" }

func (s sighting) code() string {
	if s.Error == nil {
		return ""
	}
	return s.Error.Code
}

func (s sighting) String() string { return fmt.Sprintf("%s %d %% %s", s.Status, s.Progress, s.code()) }

func (s sighting) rank() int {
	return map[string]int{"queued": 0, "in_progress": 1, "completed": 2, "failed": 2}[s.Status]
}

// plan makes the tasks: every fate with every vendor and every format, all the same in every run.
func (c *chaos) plan(n int) []*chaosTask {
	all, vendors, formats := fates(), chaosVendors(), []string{"sora", "generic", "vendorc"}
	customs := []custom{keyed, plain, marking, plain, keyed}
	tasks := make([]*chaosTask, n)
	for i := range tasks {
		round := i / len(all)
		task := &chaosTask{
			number: i, fate: all[i%len(all)], custom: customs[i%len(customs)],
			vendor: vendors[(i+round)%len(vendors)], format: formats[(i+round/3)%len(formats)],
			cancel: i%23 == 22,
		}
		kind := task.fate.model
		if kind == "" {
			kind = map[bool]string{true: "fast", false: "slow"}[i%3 == 0]
		}
		task.model = task.vendor + "-" + kind
		task.prompt = fmt.Sprintf("task %03d %s", i, task.fate.mark())
		task.key = "chaos " + task.prompt
		if i%9 == 4 {
			task.image = append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte(task.prompt), 100)...)
		}
		switch i % 11 {
		case 4:
			task.removal = deletedUnderWay
		case 7:
			task.removal = deletedAtEnd
		}
		if task.removal != kept && task.custom == keyed {
			heir := *task
			heir.is, heir.removal, heir.cancel, heir.fate = true, kept, false, all[0]
			heir.model, heir.prompt = task.vendor+"-fast", fmt.Sprintf("heir of task %03d", i)
			task.heir = &heir
		}
		tasks[i] = task
	}
	return tasks
}
