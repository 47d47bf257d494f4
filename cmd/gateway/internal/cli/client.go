package cli

import (
	"bytes"
	"cmp"
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

	"github.com/schollz/progressbar/v3"

	"modelrelay/providers"
	"modelrelay/storage"
)

const (
	clientDial   = 10 * time.Second
	clientHeader = 90 * time.Second // longer than the longest wait of a status read
	// clientTries is the maximum number of tries of a request while the gateway is unreachable or requests a later try. It is waitTries for
	// the wait for a task: about five minutes with the pauses.
	clientTries, waitTries = 4, 10
	// clientPause is the wait before the second try, unless the gateway specifies one. It doubles with each try, up to clientPauseMost.
	clientPause, clientPauseMost = time.Second, time.Minute
	// maxAnswer bounds a JSON answer of the gateway, in bytes.
	maxAnswer = 4 << 20
)

// clientFlags are the address of a gateway and the caller's token.
type clientFlags struct {
	URL   string `help:"Address of the gateway (GATEWAY_URL)." default:"http://127.0.0.1:8080" variable:"GATEWAY_URL" name:"url"`
	Token string `help:"Token of the caller (GATEWAY_TOKEN)." variable:"GATEWAY_TOKEN" placeholder:"KEY"`
}

// videoClient is a client of a gateway in the Sora format.
type videoClient struct {
	*Program

	base  string
	token providers.Secret
	http  *http.Client
	bar   *progressbar.ProgressBar // invisible unless Stderr is a terminal
	shown string                   // the last line of progress without a terminal
}

func (f *clientFlags) client(p *Program) (*videoClient, error) {
	if f.Token == "" {
		return nil, &UsageError{Err: errors.New("a token is required: --token or GATEWAY_TOKEN")}
	}
	u, err := url.Parse(f.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &UsageError{Err: errors.New("--url requires http://host or https://host")}
	}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: clientDial}).DialContext,
		TLSHandshakeTimeout:   clientDial,
		ResponseHeaderTimeout: clientHeader,
		ForceAttemptHTTP2:     true,
	}
	p.OnClose(func() error { transport.CloseIdleConnections(); return nil })
	return &videoClient{
		Program: p,
		base:    u.Scheme + "://" + u.Host + strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1"), // an SDK's base URL is accepted too
		token:   providers.Secret(f.Token),
		http:    &http.Client{Transport: transport},
	}, nil
}

func (c *videoClient) note(format string, args ...any) {
	switch {
	case c.JSON:
	case c.bar != nil:
		progressbar.Bprintln(c.bar, fmt.Sprintf(format, args...)) //nolint:errcheck // prints to a terminal
	default:
		fmt.Fprintf(c.Stderr, format+"\n", args...)
	}
}

// draw begins a progress bar of total units. The caller calls end.
func (c *videoClient) draw(total int64, label string, options ...progressbar.Option) (end func()) {
	c.bar = progressbar.NewOptions64(total, append(options, progressbar.OptionSetDescription(label), progressbar.OptionSetWriter(c.Stderr),
		progressbar.OptionSetVisibility(c.Terminal && !c.JSON), progressbar.OptionSetElapsedTime(true), progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetWidth(28))...)
	return func() {
		_ = c.bar.Exit() // never fails without a hook
		if c.bar.IsStarted() {
			fmt.Fprintln(c.Stderr)
		}
		c.bar = nil
	}
}

type gatewayError struct {
	Failure    videoFailure `json:"error"`
	status     int
	requestID  string
	retryAfter time.Duration // negative: the gateway specified none
	final      bool          // the gateway reports that a retry cannot succeed
}

type videoFailure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Param   string `json:"param"` // the invalid field, "" for none
}

// Error returns the gateway's message.
func (e *gatewayError) Error() string {
	text := cmp.Or(e.Failure.Message, http.StatusText(e.status)) + " (" + strings.TrimSpace(strconv.Itoa(e.status)+" "+e.Failure.Code)
	if e.requestID != "" {
		text += ", request " + e.requestID
	}
	return text + ")"
}

// retryable reports whether a retry may succeed, and the wait that the gateway requests; negative for none.
func retryable(err error) (wait time.Duration, again bool) {
	var answer *gatewayError
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return 0, false
	case !errors.As(err, &answer):
		return -1, true // the connection failed
	}
	again = answer.status == http.StatusConflict || answer.status == http.StatusTooManyRequests ||
		answer.status == http.StatusRequestTimeout ||
		answer.status >= http.StatusInternalServerError
	return answer.retryAfter, again && !answer.final
}

// request is a request with up to tries tries if a retry may succeed. All requests here may be repeated: they are reads, cancels, or
// creates with an idempotency key.
type request struct {
	method, path string
	header       http.Header
	body         []byte
	tries        int
}

// do sends the request. The caller closes the body of the answer, which has a status 2xx.
func (c *videoClient) do(ctx context.Context, r request) (*http.Response, error) {
	for try := 0; ; try++ {
		resp, err := c.send(ctx, r)
		wait, again := retryable(err)
		if !again || try+1 >= r.tries {
			return resp, err
		}
		if wait < 0 {
			wait = clientPause << try
		}
		if try == 0 && wait > 0 {
			c.note("The gateway cannot serve this now, trying again: %v", err)
		}
		if err := storage.Sleep(ctx, min(wait, clientPauseMost)); err != nil {
			return nil, err
		}
	}
}

func (c *videoClient) send(ctx context.Context, r request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	maps.Copy(req.Header, r.header)
	req.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	req.Header.Set("User-Agent", "modelrelay-cli/"+c.Build.Version)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the gateway: %w", err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	failed := &gatewayError{retryAfter: -1}
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(failed) // the status suffices
	failed.status, failed.requestID = resp.StatusCode, resp.Header.Get("X-Request-Id")
	failed.final = resp.Header.Get("X-Should-Retry") == "false"
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		failed.retryAfter = time.Duration(seconds) * time.Second
	}
	return nil, failed
}

func (c *videoClient) task(ctx context.Context, r request) (*videoTask, error) {
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
		return nil, errors.New("the answer is not a task: check that --url is a gateway")
	}
	return task, nil
}

// videoTask is a video object of the Sora format, or a task of any kind. Null and absent members are zero.
type videoTask struct {
	ID        string   `json:"id"`
	Operation string   `json:"operation"`
	Stage     string   `json:"stage"`
	Attempts  int      `json:"attempts"`
	Cost      *float64 `json:"cost"`
	Usage     struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
	} `json:"usage"`
	Result struct {
		Status int    `json:"status_code"`
		Type   string `json:"content_type"`
		Bytes  int64  `json:"bytes"`
	} `json:"result"`

	Model       string       `json:"model"`
	Status      string       `json:"status"`
	Progress    *int         `json:"progress"`
	Seconds     string       `json:"seconds"`
	Size        string       `json:"size"`
	CreatedAt   int64        `json:"created_at"`
	CompletedAt int64        `json:"completed_at"`
	ExpiresAt   int64        `json:"expires_at"`
	Error       videoFailure `json:"error"`

	raw json.RawMessage // the whole answer
}

// percent returns the progress of a video, "" for a task without one.
func (t *videoTask) percent() string {
	if t.Progress == nil {
		return ""
	}
	return strconv.Itoa(*t.Progress) + "%"
}

func (t *videoTask) ended() bool {
	return t.Status == "completed" || t.Status == "failed" || t.Status == "cancelled"
}

func (c *videoClient) print(t *videoTask) error {
	unix := func(seconds int64) string {
		if seconds == 0 {
			return ""
		}
		return moment(time.Unix(seconds, 0))
	}
	failure := ""
	if t.Error != (videoFailure{}) {
		failure = t.Error.Message + " (" + t.Error.Code + ")"
	}
	used, cost, result := "", "", ""
	if t.Usage.Input+t.Usage.Output > 0 {
		used = fmt.Sprintf("%d in, %d out", t.Usage.Input, t.Usage.Output)
	}
	if t.Cost != nil {
		cost = strconv.FormatFloat(*t.Cost, 'f', -1, 64)
	}
	if t.Result.Status > 0 {
		result = fmt.Sprintf("%d %s, %s", t.Result.Status, t.Result.Type, Counted(int(t.Result.Bytes), "byte"))
	}
	return c.showFields(t.raw, fields{
		{"id", t.ID},
		{"operation", t.Operation},
		{"status", strings.TrimSpace(t.Status + " " + t.Stage)},
		{"progress", t.percent()},
		{"model", t.Model},
		{"attempts", count(t.Attempts)},
		{"seconds", t.Seconds},
		{"size", t.Size},
		{"created", unix(t.CreatedAt)},
		{"completed", unix(t.CompletedAt)},
		{"expires", unix(t.ExpiresAt)},
		{"tokens", used},
		{"cost", cost},
		{"result", result},
		{"error", failure},
	})
}

// await reads the task until it has ended, at most once per every, and shows its progress. The gateway may hold a read open.
func (c *videoClient) await(ctx context.Context, root taskRoot, id string, every time.Duration) (*videoTask, error) {
	defer c.draw(100, "")()
	for start := time.Now(); ; {
		asked := time.Now()
		task, err := c.task(ctx, request{method: http.MethodGet, path: root.path(id, "?wait=20"), tries: waitTries})
		if err != nil {
			return nil, err
		}
		status, percent := providers.Shown(strings.TrimSpace(task.Status+" "+task.Stage)), task.percent()
		if c.bar.Describe(status); !c.Terminal && status+percent != c.shown {
			c.shown = status + percent
			c.note("%s %4s  %s", status, percent, time.Since(start).Round(time.Second))
		}
		if task.Progress != nil {
			_ = c.bar.Set(*task.Progress) // the bar refuses a number above 100
		}
		if task.ended() {
			return task, nil
		}
		if err := storage.Sleep(ctx, every-time.Since(asked)); err != nil {
			return nil, err
		}
	}
}

// finish waits for a task, downloads its result if an output is named, and prints it.
func (c *videoClient) finish(ctx context.Context, root taskRoot, id string, every time.Duration, output string) error {
	task, err := c.await(ctx, root, id, every)
	switch {
	case err != nil && ctx.Err() != nil:
		fmt.Fprintf(c.Stderr, "The task continues without this command. To continue waiting: gateway %s wait %s\n", root.name(), id)
		return err
	case err != nil:
		return err
	case task.Status != "completed":
		if c.JSON {
			_ = c.print(task) // the failure is more important
		}
		if task.Status == "cancelled" {
			return fmt.Errorf("%s was cancelled", id)
		}
		return fmt.Errorf("%s failed: %s (%s)", id, task.Error.Message, task.Error.Code)
	case output != "":
		from := videoContent(id, 0)
		if root.name() == "task" {
			from = root.path(id, "/result")
		}
		if _, err := c.download(ctx, from, output); err != nil {
			return err
		}
	}
	return c.print(task)
}
