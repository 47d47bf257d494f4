package e2e_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"modelrelay/dev/e2e/stack"
)

const (
	// chaosPatience is a client's: it gives up a request that takes longer and sends it again. A plain one, which must not,
	// waits plainPatience: longer than a create takes whose start Temporal does not answer.
	chaosPatience = 5 * time.Second
	plainPatience = 30 * time.Second
	// chaosLook is how often a client reads its task at most, and chaosLooks how often all of them do in a second: more would take
	// the machine from the tasks.
	chaosLook  = 3 * time.Second
	chaosLooks = 100
	// chaosAgain is how soon a client repeats what failed.
	chaosAgain = 300 * time.Millisecond
	// goneLooks is how often each gateway is asked for a task that was deleted.
	goneLooks = 4
	// heirPatience is how long a client waits for a key whose task it deleted: Temporal may need minutes to forget that.
	heirPatience = 45 * time.Second
)

// live is a client: it creates its task, repeating itself as is its custom, and reads it until it has ended, or deletes it.
func (c *chaos) live(ctx context.Context, task *chaosTask) {
	if !pause(ctx, *chaosFor*2/3*time.Duration(task.number)/time.Duration(*chaosTasks)) {
		return
	}
	c.follow(ctx, task)
}

func (c *chaos) follow(ctx context.Context, task *chaosTask) {
	if !c.make(ctx, task) {
		return
	}
	look := max(chaosLook, time.Duration(*chaosTasks)*time.Second/chaosLooks)
	for !task.last.ended() {
		if !pause(ctx, look) {
			c.bad(stuck, "%s: not over, last seen %v", task, task.last)
			return
		}
		if task.cancel && !task.called {
			code, _ := c.ask(ctx, c.fronts[task.home()], request{method: http.MethodPost, path: "/v1/videos/" + task.id + "/cancel"}, nil)
			task.called = code == http.StatusOK
		}
		var now sighting
		switch code, _ := c.ask(ctx, c.fronts[task.home()], request{method: http.MethodGet, path: "/v1/videos/" + task.id}, &now); {
		case code == http.StatusNotFound && !task.is: // an heir's gateway may remember for a moment that its id was unknown
			c.bad(lost, "%s: accepted, then not found", task)
			return
		case code != http.StatusOK:
			continue
		}
		if now.ID != task.id || now.Progress < task.last.Progress && now.Status != "failed" || now.rank() < task.last.rank() {
			c.wrong("%s: was %v, then %v", task, task.last, now)
		}
		task.last = now
		if task.removal == deletedUnderWay {
			break
		}
	}
	c.ended()
	if task.removal == kept || !c.remove(ctx, task) {
		return
	}
	if task.heir != nil {
		c.follow(ctx, task.heir)
	}
}

// make sends creates until one is answered, each try to the other gateway; false where the client leaves without an answer.
func (c *chaos) make(ctx context.Context, task *chaosTask) bool {
	began := time.Now()
	for {
		id, code, after := c.create(ctx, task)
		task.asked++
		if id != "" {
			task.id = id
			return true
		}
		if code == 0 || code >= http.StatusInternalServerError {
			task.lost++
		}
		if task.custom == plain && (code != http.StatusServiceUnavailable && code != http.StatusTooManyRequests || after == 0) {
			return false
		}
		if task.is && code == http.StatusConflict && time.Since(began) > heirPatience {
			return false
		}
		if !pause(ctx, max(chaosAgain, after)) {
			c.bad(stuck, "%s: no answer to %d creates", task, task.asked)
			return false
		}
	}
}

// create sends the create once; "" where no task came of it, with the answer's status and its Retry-After.
func (c *chaos) create(ctx context.Context, task *chaosTask) (id string, code int, after time.Duration) {
	req := request{method: http.MethodPost, path: "/v1/videos", body: map[string]any{"model": task.model, "prompt": task.prompt}}
	data := base64.StdEncoding.EncodeToString(task.image)
	switch task.format {
	case "sora":
		if task.image != nil {
			req.body["input_reference"] = map[string]string{"image_url": "data:image/png;base64," + data}
		}
	case "generic":
		req.path = "/v1/video/generations"
		if task.image != nil {
			req.body["image"] = data
		}
	case "vendorc":
		req.path = "/vendorC/?Action=CVSync2AsyncSubmitTask&Version=2022-08-31"
		req.body = map[string]any{"req_key": task.model, "prompt": task.prompt}
		if task.image != nil {
			req.body["binary_data_base64"] = []string{data}
		}
	}
	switch task.custom {
	case keyed:
		req.header = map[string]string{"Idempotency-Key": task.key}
	case marking:
		if task.asked > 0 {
			req.header = map[string]string{"X-Stainless-Retry-Count": strconv.Itoa(task.asked)}
		}
		req.patience = plainPatience
	case plain:
		req.patience = plainPatience
	}
	var made struct {
		ID   string `json:"id"`
		Data struct {
			TaskID string `json:"task_id"`
		} `json:"data"`
		Error json.RawMessage `json:"error"`
	}
	code, after = c.ask(ctx, c.fronts[(task.home()+task.asked)%len(c.fronts)], req, &made)
	switch {
	case code == http.StatusOK:
		return made.ID + made.Data.TaskID, code, 0
	case code/100 == 4 && code != http.StatusConflict && code != http.StatusTooManyRequests:
		c.wrong("%s: create answered %d %s", task, code, made.Error)
	}
	return "", code, after
}

// remove deletes the task, repeating itself until it is answered; from then on every gateway must say that there is none.
func (c *chaos) remove(ctx context.Context, task *chaosTask) bool {
	for tries := 0; ; tries++ {
		code, _ := c.ask(ctx, c.fronts[(task.home()+tries)%len(c.fronts)], request{method: http.MethodDelete, path: "/v1/videos/" + task.id}, nil)
		if code == http.StatusOK || code == http.StatusNotFound && tries > 0 {
			break
		}
		if code == http.StatusNotFound {
			c.bad(lost, "%s: not found, though nobody deleted it", task)
		}
		if !pause(ctx, chaosAgain) {
			c.bad(stuck, "%s: no answer to %d deletes", task, tries+1)
			return false
		}
	}
	task.gone = true
	for look := range goneLooks {
		for i, g := range c.fronts {
			var now sighting
			if code, _ := c.ask(ctx, g, request{method: http.MethodGet, path: "/v1/videos/" + task.id}, &now); code == http.StatusOK {
				c.wrong("%s: gateway %d reads %v at look %d after its delete was answered", task, i, now, look+1)
			}
		}
		if !pause(ctx, chaosAgain) {
			return false
		}
	}
	return true
}

// request is what a client sends.
type request struct {
	method, path string
	header       map[string]string
	body         map[string]any
	patience     time.Duration // 0: chaosPatience
}

// ask sends a request and reads the answer's JSON; 0 where there was none.
func (c *chaos) ask(ctx context.Context, g *stack.Gateway, r request, into any) (code int, after time.Duration) {
	if r.patience == 0 {
		r.patience = chaosPatience
	}
	ctx, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	send := stack.Request{Method: r.method, Path: r.path, Token: stack.HookToken, Header: r.header}
	if r.body != nil {
		send.Body = r.body
	}
	answer, err := g.Send(ctx, send)
	if err != nil || into != nil && json.Unmarshal(answer.Body, into) != nil {
		return 0, 0
	}
	seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After")) // absent: 0
	return answer.Status, time.Duration(seconds) * time.Second
}
