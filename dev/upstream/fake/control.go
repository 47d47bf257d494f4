package fake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"modelrelay/dev/upstream/jobs"
	"modelrelay/dev/upstream/script"
)

// maxWait bounds a long poll.
const maxWait = 60 * time.Second

// control is the control interface of a server.
type control struct{ *Server }

func (s control) route() {
	routes := map[string]func(w http.ResponseWriter, r *http.Request) (any, error){
		"GET /_control/rules":           s.listRules,
		"POST /_control/rules":          s.addRule,
		"POST /_control/rules/{id}":     s.moveRule,
		"DELETE /_control/rules":        s.removeRules,
		"DELETE /_control/rules/{id}":   s.removeRules,
		"GET /_control/scripts":         s.listScripts,
		"POST /_control/scripts":        s.addScript,
		"DELETE /_control/scripts":      s.removeScripts,
		"DELETE /_control/scripts/{id}": s.removeScripts,
		"POST /_control/release":        s.releaseCalls,
		"GET /_control/wait":            s.waitForCalls,
		"GET /_control/stats":           s.showStats,
		"GET /_control/jobs":            s.listJobs,
		"GET /_control/jobs/{id}":       s.showJob,
		"POST /_control/jobs/{id}":      s.driveJob,
		"GET /_control/requests":        s.listRequests,
		"POST /_control/reset":          s.reset,
		"GET /healthz":                  func(http.ResponseWriter, *http.Request) (any, error) { return map[string]bool{"ok": true}, nil },
	}
	for pattern, answer := range routes {
		s.Mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			status := http.StatusOK
			v, err := answer(w, r)
			if err != nil {
				status, v = http.StatusBadRequest, map[string]string{"error": err.Error()}
				if _, unknown := errors.AsType[unknownError](err); unknown {
					status = http.StatusNotFound
				}
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(v)
		})
	}
}

// unknownError says that a job, rule or script does not exist.
type unknownError string

func (e unknownError) Error() string { return string(e) }

func decodeControl(r *http.Request, v any) error {
	d := json.NewDecoder(io.LimitReader(r.Body, 1<<20))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	return nil
}

func filterOf(r *http.Request) tallyFilter {
	q := r.URL.Query()
	return tallyFilter{vendor: q.Get("vendor"), operation: q.Get("operation"), key: q.Get("key"), model: q.Get("model")}
}

func (s control) listRules(http.ResponseWriter, *http.Request) (any, error) {
	return map[string]any{"rules": s.rules.all()}, nil
}

func (s control) addRule(_ http.ResponseWriter, r *http.Request) (any, error) {
	added := new(rule)
	if err := decodeControl(r, added); err != nil {
		return nil, err
	}
	if err := added.check(); err != nil {
		return nil, err
	}
	return map[string]string{"id": s.rules.add(added)}, nil
}

func (s control) moveRule(_ http.ResponseWriter, r *http.Request) (any, error) {
	var to struct {
		Chunks int `json:"chunks"`
	}
	id := r.PathValue("id")
	switch err := decodeControl(r, &to); {
	case err != nil:
		return nil, err
	case to.Chunks <= 0:
		return nil, errors.New("chunks: must be positive")
	case !s.rules.move(id, to.Chunks):
		return nil, unknownError("no stall " + id)
	}
	return map[string]any{"rules": s.rules.all()}, nil
}

func (s control) removeRules(_ http.ResponseWriter, r *http.Request) (any, error) {
	id := r.PathValue("id")
	if !s.rules.remove(id) && id != "" {
		return nil, unknownError("no rule " + id)
	}
	return map[string]any{"rules": s.rules.all()}, nil
}

func (s control) releaseCalls(_ http.ResponseWriter, r *http.Request) (any, error) {
	id := r.URL.Query().Get("rule")
	if !s.rules.release(id) {
		return nil, unknownError("no rule " + id)
	}
	return map[string]bool{"released": true}, nil
}

// waitForCalls answers 200 whether the count was reached or not; reached says which.
func (s control) waitForCalls(_ http.ResponseWriter, r *http.Request) (any, error) {
	q := r.URL.Query()
	count, err := strconv.ParseInt(q.Get("count"), 10, 64)
	if err != nil {
		if q.Get("count") != "" {
			return nil, fmt.Errorf("count: %w", err)
		}
		count = 1
	}
	limit := maxWait
	if text := q.Get("timeout"); text != "" {
		if limit, err = time.ParseDuration(text); err != nil {
			return nil, fmt.Errorf("timeout: %w", err)
		}
	}
	phase := q.Get("phase")
	if _, ok := new(tally).phase(phase); !ok {
		return nil, fmt.Errorf("phase: unknown word %q", phase)
	}
	ctx, cancel := context.WithTimeout(r.Context(), min(limit, maxWait))
	defer cancel()
	reached, have := s.ledger.wait(ctx, filterOf(r), phase, count)
	return map[string]any{"reached": reached, "count": have}, nil
}

// showStats counts calls of the selected vendor, operation, key and model, and the jobs of the selected vendor, key and
// model; jobs=false leaves the list of jobs out.
func (s control) showStats(_ http.ResponseWriter, r *http.Request) (any, error) {
	f := filterOf(r)
	found := s.Jobs.List(jobFilter(f))
	submissions := 0
	for i := range found {
		submissions += found[i].Submissions
	}
	videos := map[string]any{"created": len(found), "submissions": submissions}
	if r.URL.Query().Get("jobs") != "false" {
		videos["jobs"] = s.jobViews(found)
	}
	return map[string]any{
		"vendors":     s.ledger.byVendor(f),
		"total":       s.ledger.sum(f),
		"connections": map[string]int64{"accepted": s.Connections.accepted.Load(), "open": s.Connections.open.Load()},
		"videos":      videos,
	}, nil
}

func jobFilter(f tallyFilter) func(j *jobs.Job) bool {
	return func(j *jobs.Job) bool {
		return (f.vendor == "" || f.vendor == j.Vendor) && (f.key == "" || f.key == j.Key) && (f.model == "" || f.model == j.Model)
	}
}

// jobView is a job as the control interface shows it.
type jobView struct {
	jobs.Job

	State     string `json:"state"`
	Progress  int    `json:"progress"`
	Manual    bool   `json:"manual"`
	Polls     int    `json:"polls"`
	Seen      int64  `json:"seen,omitempty"` // when a poll first found it over, in milliseconds since 1970
	Downloads int    `json:"downloads"`
	SHA256    string `json:"sha256"` // of the first output's content
	Length    int64  `json:"length"` // of the same, in bytes
}

func (s control) jobViews(list []jobs.Job) []jobView {
	views := make([]jobView, 0, len(list))
	now := time.Now()
	for i := range list {
		j := &list[i]
		v := jobView{
			Job: *j, Manual: j.Duration < 0, Polls: j.Polls, Seen: j.Seen, Downloads: j.Downloads,
			SHA256: s.Clip.Digest(j.Mark(0), j.Bytes),
		}
		v.State, v.Progress = j.At(now)
		_, v.Length = s.Clip.Tail(j.Mark(0), j.Bytes)
		views = append(views, v)
	}
	return views
}

func (s control) listJobs(_ http.ResponseWriter, r *http.Request) (any, error) {
	prompt := r.URL.Query().Get("contains")
	chosen := jobFilter(filterOf(r))
	return map[string]any{"jobs": s.jobViews(s.Jobs.List(func(j *jobs.Job) bool {
		return chosen(j) && strings.Contains(j.Prompt, prompt)
	}))}, nil
}

func (s control) showJob(_ http.ResponseWriter, r *http.Request) (any, error) {
	j := s.Jobs.Get(r.PathValue("id"))
	if j == nil {
		return nil, unknownError("no job " + r.PathValue("id"))
	}
	return s.jobViews([]jobs.Job{*j})[0], nil
}

// driveJob puts a job into a state: {state, progress, error: {code, message}, word, size}. What is left out stays.
func (s control) driveJob(_ http.ResponseWriter, r *http.Request) (any, error) {
	var order struct {
		State     string      `json:"state"`
		Progress  *int        `json:"progress"`
		Error     *jobs.Fault `json:"error"`
		Word      *string     `json:"word"`
		Size      int64       `json:"size"`
		Forgotten *bool       `json:"forgotten"`
	}
	if err := decodeControl(r, &order); err != nil {
		return nil, err
	}
	if order.State != "" && !jobs.KnownState(order.State) {
		return nil, fmt.Errorf("state: unknown word %q", order.State)
	}
	now := time.Now()
	j, err := s.Jobs.Change(r.PathValue("id"), func(j *jobs.Job) {
		state, progress := j.At(now)
		if order.State != "" || order.Progress != nil {
			if order.State != "" {
				state = order.State
			}
			if order.Progress != nil {
				progress = *order.Progress
			}
			j.Drive(state, progress)
		}
		if order.Error != nil {
			j.Failure = order.Error
		}
		if order.Word != nil {
			j.Word = *order.Word
		}
		if order.Size > 0 {
			j.Bytes = order.Size
		}
		if order.Forgotten != nil {
			j.Forgotten = *order.Forgotten
		}
	})
	switch {
	case err != nil:
		return nil, err
	case j == nil:
		return nil, unknownError("no job " + r.PathValue("id"))
	}
	return s.jobViews([]jobs.Job{*j})[0], nil
}

func (s control) listRequests(_ http.ResponseWriter, r *http.Request) (any, error) {
	n := 0
	if text := r.URL.Query().Get("last"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			return nil, fmt.Errorf("last: %w", err)
		}
	}
	return map[string]any{"requests": s.recorder.last(filterOf(r), n)}, nil
}

// reset ends rules and scripts, lets held calls go, and forgets counts, requests and jobs; keep=jobs leaves the jobs.
func (s control) reset(_ http.ResponseWriter, r *http.Request) (any, error) {
	s.rules.reset()
	s.Scripts.Remove("")
	s.ledger.reset()
	s.recorder.reset()
	if r.URL.Query().Get("keep") != "jobs" {
		if err := s.Jobs.Reset(); err != nil {
			return nil, err
		}
	}
	return map[string]bool{"reset": true}, nil
}

func (s control) addScript(_ http.ResponseWriter, r *http.Request) (any, error) {
	added := new(script.Script)
	if err := decodeControl(r, added); err != nil {
		return nil, err
	}
	if err := added.Check(); err != nil {
		return nil, err
	}
	return map[string]string{"id": s.Scripts.Add(added)}, nil
}

func (s control) listScripts(http.ResponseWriter, *http.Request) (any, error) {
	return map[string]any{"scripts": s.Scripts.All()}, nil
}

func (s control) removeScripts(_ http.ResponseWriter, r *http.Request) (any, error) {
	id := r.PathValue("id")
	if !s.Scripts.Remove(id) && id != "" {
		return nil, unknownError("no script " + id)
	}
	return s.listScripts(nil, nil)
}
