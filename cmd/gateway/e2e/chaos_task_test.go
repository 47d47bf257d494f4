package e2e_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"
)

const (
	// chaosJobs is how many jobs vendor C's channel has room for.
	chaosJobs = 8
	// chaosPatience is a client's: it gives up a request that takes longer and sends it again.
	chaosPatience = 5 * time.Second
	// chaosLook is how often a client looks at its task, and chaosAgain how soon it repeats what failed.
	chaosLook  = 3 * time.Second
	chaosAgain = 300 * time.Millisecond
)

// fate is what befalls a task at its upstream, by a mark in its prompt.
type fate struct {
	name  string
	model string           // instead of a plain one
	rules []map[string]any // of the upstream, for prompts with the mark
	// refused: the upstream surely does not take the job. unsure: it may have, but its answer is of no use.
	refused, unsure bool
}

func (f fate) mark() string { return "[" + f.name + "]" }

// lookUps is how many creates in all of tasks whose upstream can be asked again are spoiled: more than once each, not for
// ever.
const lookUps = 12

func fates() []fate {
	all := []fate{
		{name: "plain"},
		{name: "answered late", rules: on("create", map[string]any{"action": "delay", "ms": 1500, "accept": true})},
		{name: "plain"},
		{name: "dropped", unsure: true, rules: onCreates(map[string]any{"action": "drop"})},
		{name: "polls fail", rules: on("get", map[string]any{"action": "status", "status": 500, "times": 25})},
		{name: "busy", rules: on("create", map[string]any{"action": "status", "status": 429, "times": 10, "headers": map[string]string{"Retry-After": "1"}})},
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
			name, vendor, c.at, path, key, chaosModels(vendor), limit)
	}
	return channel("main", "openai", "openai/v1", "sk-upstream-main") + channel("spare", "openai", "openai/v1", "sk-upstream-spare") +
		channel("visual", "vendorc", "vendorc", "ak-upstream-visual:sk-upstream-visual") +
		channel("chained", "generic", "generic/v1", "sk-upstream-chained")
}

// chaosTask is one task and its client.
type chaosTask struct {
	number         int
	fate           fate
	vendor, format string
	model, prompt  string
	image          []byte // sent along; nil for none
	cancel         bool   // its client calls it off, sooner or later

	id     string
	asked  int // creates sent until one was answered
	last   sighting
	called bool // the cancel was answered
}

// sighting is what every read of a task says.
type sighting struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Progress int    `json:"progress"`
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
	tasks := make([]*chaosTask, n)
	for i := range tasks {
		round := i / len(all)
		task := &chaosTask{
			number: i, fate: all[i%len(all)], vendor: vendors[(i+round)%len(vendors)], format: formats[(i+round/3)%len(formats)],
			cancel: i%23 == 22,
		}
		kind := task.fate.model
		if kind == "" {
			kind = map[bool]string{true: "fast", false: "slow"}[i%3 == 0]
		}
		task.model = task.vendor + "-" + kind
		task.prompt = fmt.Sprintf("task %03d %s", i, task.fate.mark())
		if i%9 == 4 {
			task.image = append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte(task.prompt), 100)...)
		}
		tasks[i] = task
	}
	return tasks
}

// live is a client: it creates its task, repeating itself until it is answered, and looks at it until it has ended.
func (c *chaos) live(ctx context.Context, task *chaosTask) {
	if !pause(ctx, chaosFor*2/3*time.Duration(task.number)/time.Duration(*chaosTasks)) {
		return
	}
	for {
		id, answered := c.create(ctx, task)
		task.asked++
		if answered {
			task.id = id
			break
		}
		if !pause(ctx, chaosAgain) {
			c.wrong("%s: no answer to %d creates", task.prompt, task.asked)
			return
		}
	}
	for !task.last.ended() {
		if !pause(ctx, chaosLook) {
			c.wrong("%s (%s over %s, %s): not over, last seen %v", task.prompt, task.format, task.vendor, task.id, task.last)
			return
		}
		if task.cancel && !task.called {
			task.called = c.ask(ctx, http.MethodPost, "/v1/videos/"+task.id+"/cancel", nil, nil, nil) == http.StatusOK
		}
		var now sighting
		if c.ask(ctx, http.MethodGet, "/v1/videos/"+task.id, nil, nil, &now) != http.StatusOK {
			continue
		}
		if now.ID != task.id || now.Progress < task.last.Progress || now.rank() < task.last.rank() {
			c.wrong("%s: was %v, then %v", task.prompt, task.last, now)
		}
		task.last = now
	}
}

// create sends the create once; false where it must be sent again.
func (c *chaos) create(ctx context.Context, task *chaosTask) (id string, answered bool) {
	path, body := "/v1/videos", map[string]any{"model": task.model, "prompt": task.prompt}
	data := base64.StdEncoding.EncodeToString(task.image)
	switch task.format {
	case "sora":
		if task.image != nil {
			body["input_reference"] = map[string]string{"image_url": "data:image/png;base64," + data}
		}
	case "generic":
		path = "/v1/video/generations"
		if task.image != nil {
			body["image"] = data
		}
	case "vendorc":
		path = "/vendorC/?Action=CVSync2AsyncSubmitTask&Version=2022-08-31"
		body = map[string]any{"req_key": task.model, "prompt": task.prompt}
		if task.image != nil {
			body["binary_data_base64"] = []string{data}
		}
	}
	var made struct {
		ID   string `json:"id"`
		Data struct {
			TaskID string `json:"task_id"`
		} `json:"data"`
		Error json.RawMessage `json:"error"`
	}
	code := c.ask(ctx, http.MethodPost, path, map[string]string{"Idempotency-Key": "chaos " + task.prompt}, body, &made)
	switch {
	case code == http.StatusOK && made.ID+made.Data.TaskID != "":
		return made.ID + made.Data.TaskID, true
	case code/100 == 4 && code != http.StatusConflict && code != http.StatusTooManyRequests:
		c.wrong("%s: create as %s answered %d %s", task.prompt, task.format, code, made.Error)
	}
	return "", false
}

// ask sends a request and reads the answer's JSON; 0 where there was none.
func (c *chaos) ask(ctx context.Context, method, path string, header map[string]string, body, into any) int {
	ctx, cancel := context.WithTimeout(ctx, chaosPatience)
	defer cancel()
	var doc []byte
	if body != nil {
		doc, _ = json.Marshal(body) // maps of strings
	}
	req, err := http.NewRequestWithContext(ctx, method, c.front.url()+path, bytes.NewReader(doc))
	if err != nil {
		c.wrong("%v", err)
		return 0
	}
	req.Header.Set("Authorization", "Bearer "+hookToken)
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0
	}
	if into != nil && json.Unmarshal(answer, into) != nil {
		return 0
	}
	return resp.StatusCode
}
