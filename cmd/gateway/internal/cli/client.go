package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"modelrelay/providers"
)

const (
	clientDial   = 10 * time.Second
	clientHeader = 90 * time.Second // more than the longest wait the gateway grants a status read
	// clientTries is how often one request is sent when the gateway is away or asks to come back later.
	clientTries = 4
	// clientPause is the wait before the second try when the gateway names none; it doubles with each try.
	clientPause = time.Second
	// clientPauseMost bounds the wait before a try, whatever the gateway names.
	clientPauseMost = time.Minute
	// maxAnswer bounds a JSON answer of the gateway.
	maxAnswer = 4 << 20
)

// gatewayClient speaks the Sora format to a gateway.
type gatewayClient struct {
	base  string
	token providers.Secret
	agent string
	http  *http.Client
	// note tells a person that the client waits.
	note func(text string)
}

func newGatewayClient(base, agent string, token providers.Secret) (*gatewayClient, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &UsageError{Err: errors.New("--url wants http://host or https://host")}
	}
	path := strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1") // an SDK's base URL works as well
	return &gatewayClient{
		note:  func(string) {},
		base:  u.Scheme + "://" + u.Host + path,
		token: token,
		agent: agent,
		http: &http.Client{Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: clientDial}).DialContext,
			TLSHandshakeTimeout:   clientDial,
			ResponseHeaderTimeout: clientHeader,
			ForceAttemptHTTP2:     true,
		}},
	}, nil
}

// answerError is an answer of the gateway that says no.
type answerError struct {
	Status     int
	Code       string
	Message    string
	RequestID  string
	retryAfter time.Duration // negative: the gateway named none
	final      bool          // the gateway says that a repetition cannot help
}

// Error gives the gateway's message.
func (e *answerError) Error() string {
	text := e.Message
	if text == "" {
		text = http.StatusText(e.Status)
	}
	text += " (" + strconv.Itoa(e.Status)
	if e.Code != "" {
		text += " " + e.Code
	}
	if e.RequestID != "" {
		text += ", request " + e.RequestID
	}
	return text + ")"
}

// passing tells whether a repetition may succeed, and how long the gateway asks to wait; negative when it does not say.
func passing(err error) (time.Duration, bool) {
	var answer *answerError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return 0, false
	case !errors.As(err, &answer):
		return -1, err != nil // the connection failed
	case answer.final:
		return 0, false
	}
	switch answer.Status {
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return answer.retryAfter, true
	default:
		return 0, false
	}
}

// request is one request that may be sent again.
type request struct {
	method, path string
	header       http.Header
	body         []byte
}

// do sends the request, again where that may help and does no harm: every request here is a read, a cancel or a create
// with an idempotency key. The caller closes the body of the answer, whose status is 2xx.
func (c *gatewayClient) do(ctx context.Context, r request) (*http.Response, error) {
	pause := clientPause
	for try := 1; ; try++ {
		resp, err := c.send(ctx, r)
		if err == nil {
			return resp, nil
		}
		wait, again := passing(err)
		if !again || try == clientTries {
			return nil, err
		}
		if wait < 0 {
			wait = pause
			pause *= 2
		}
		if try == 1 && wait > 0 {
			c.note(fmt.Sprintf("The gateway cannot serve this now, trying again: %v", err))
		}
		if err := Sleep(ctx, min(wait, clientPauseMost)); err != nil {
			return nil, err
		}
	}
}

func (c *gatewayClient) send(ctx context.Context, r request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if r.body == nil {
		req.Body, req.GetBody, req.ContentLength = nil, nil, 0
	}
	maps.Copy(req.Header, r.header)
	req.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	req.Header.Set("User-Agent", c.agent)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the gateway: %w", err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, readError(resp)
}

func readError(resp *http.Response) error {
	answer := &answerError{
		Status: resp.StatusCode, RequestID: resp.Header.Get("X-Request-Id"), retryAfter: -1,
		final: resp.Header.Get("X-Should-Retry") == "false",
	}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		answer.retryAfter = time.Duration(seconds) * time.Second
	}
	var body struct {
		Error struct {
			Message string  `json:"message"`
			Code    *string `json:"code"`
		} `json:"error"`
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // what arrived is as good as it gets
	if json.Unmarshal(text, &body) == nil {
		answer.Message = body.Error.Message
		if body.Error.Code != nil {
			answer.Code = *body.Error.Code
		}
	}
	return answer
}

// task does a request that answers with a video object.
func (c *gatewayClient) task(ctx context.Context, r request) (*videoTask, error) {
	resp, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the gateway's answer: %w", err)
	}
	task := &videoTask{raw: text}
	if err := json.Unmarshal(text, task); err != nil || task.ID == "" {
		return nil, errors.New("the answer is no video object: is --url a gateway?")
	}
	return task, nil
}

// get reads a task. Within hold the gateway may wait for a change before it answers.
func (c *gatewayClient) get(ctx context.Context, id string, hold time.Duration) (*videoTask, error) {
	path := "/v1/videos/" + url.PathEscape(id)
	if hold > 0 {
		path += "?wait=" + strconv.Itoa(int(hold.Seconds()))
	}
	return c.task(ctx, request{method: http.MethodGet, path: path})
}

func (c *gatewayClient) cancel(ctx context.Context, id string) (*videoTask, error) {
	return c.task(ctx, request{method: http.MethodPost, path: "/v1/videos/" + url.PathEscape(id) + "/cancel"})
}

// videoTask is a video object of the Sora format.
type videoTask struct {
	ID          string  `json:"id"`
	Model       string  `json:"model"`
	Status      string  `json:"status"`
	Progress    int     `json:"progress"`
	Seconds     string  `json:"seconds"`
	Size        *string `json:"size"`
	CreatedAt   int64   `json:"created_at"`
	CompletedAt *int64  `json:"completed_at"`
	ExpiresAt   *int64  `json:"expires_at"`
	Error       *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`

	raw json.RawMessage // the answer itself
}

func (t *videoTask) ended() bool { return t.Status == "completed" || t.Status == "failed" }

// failure is the error of a failed task, else nil.
func (t *videoTask) failure() error {
	switch {
	case t.Status != "failed":
		return nil
	case t.Error == nil:
		return fmt.Errorf("%s failed", t.ID)
	default:
		return fmt.Errorf("%s failed: %s (%s)", t.ID, t.Error.Message, t.Error.Code)
	}
}

func (t *videoTask) fields() fields {
	unix := func(seconds *int64) string {
		if seconds == nil {
			return ""
		}
		return moment(time.Unix(*seconds, 0))
	}
	size, failure := "", ""
	if t.Size != nil {
		size = *t.Size
	}
	if t.Error != nil {
		failure = t.Error.Message + " (" + t.Error.Code + ")"
	}
	return fields{
		{"id", t.ID},
		{"status", t.Status},
		{"progress", strconv.Itoa(t.Progress) + "%"},
		{"model", t.Model},
		{"seconds", t.Seconds},
		{"size", size},
		{"created", unix(&t.CreatedAt)},
		{"completed", unix(t.CompletedAt)},
		{"expires", unix(t.ExpiresAt)},
		{"error", failure},
	}
}

// Sleep waits; it returns ctx's error when that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
