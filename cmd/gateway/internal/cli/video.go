package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Video is gateway video: a client of a gateway, which reads no configuration file, and the operators' commands for videos.
type Video struct {
	Create   videoCreateCmd   `cmd:"" help:"Create a video."`
	Get      taskGetCmd       `cmd:"" help:"Show a task."`
	Wait     taskWaitCmd      `cmd:"" help:"Wait until a task ends."`
	Cancel   taskCancelCmd    `cmd:"" help:"Cancel a task."`
	Download videoDownloadCmd `cmd:"" help:"Fetch a finished video."`

	Content      videoContentCmd      `cmd:"" help:"Fetch the video, thumbnail or spritesheet of a finished task of any token (operator)."`
	RetryArchive videoRetryArchiveCmd `cmd:"" help:"Retry the archiving of a task that failed with archive_failed (operator)."`

	// The earlier names of the commands of Task.
	List       taskListCmd       `cmd:"" hidden:""`
	Show       taskShowCmd       `cmd:"" hidden:""`
	Counts     taskCountsCmd     `cmd:"" hidden:""`
	Deliveries taskDeliveriesCmd `cmd:"" hidden:""`
	Fail       taskFailCmd       `cmd:"" hidden:""`
	Reindex    taskReindexCmd    `cmd:"" hidden:""`
	Redeliver  taskRedeliverCmd  `cmd:"" hidden:""`
}

// ProvideRoot returns the path of the tasks of the commands.
func (*Video) ProvideRoot() (taskRoot, error) { return "/v1/videos/", nil }

// Task is gateway task: a client for tasks of every kind, and the operators' commands for tasks, which require no gateway.
type Task struct {
	Get    taskGetCmd    `cmd:"" help:"Show a task."`
	Wait   taskWaitCmd   `cmd:"" help:"Wait until a task ends."`
	Result taskResultCmd `cmd:"" help:"Fetch the result of a task that has ended: the answer of a call, or a video."`
	Cancel taskCancelCmd `cmd:"" help:"Cancel a task."`
	Delete taskDeleteCmd `cmd:"" help:"Delete a task and its result; a running task is cancelled first."`

	List       taskListCmd       `cmd:"" help:"List the tasks of all tokens (operator)."`
	Show       taskShowCmd       `cmd:"" help:"Show all details of a task (operator)."`
	Counts     taskCountsCmd     `cmd:"" help:"Count the tasks of all tokens by state (operator)."`
	Deliveries taskDeliveriesCmd `cmd:"" help:"List webhook deliveries, by default those that were given up (operator)."`
	Fail       taskFailCmd       `cmd:"" help:"End a task as failed, with a reason (operator)."`
	Reindex    taskReindexCmd    `cmd:"" help:"Rebuild the tokens' task lists after Redis lost them (operator)."`
	Redeliver  taskRedeliverCmd  `cmd:"" help:"Deliver the end event of a task to its webhook again (operator)."`
}

// ProvideRoot returns the path of the tasks of the commands.
func (*Task) ProvideRoot() (taskRoot, error) { return "/v1/tasks/", nil }

// taskRoot is the path of the tasks of a client's commands, with a slash at its end.
type taskRoot string

func (r taskRoot) path(id, more string) string { return string(r) + url.PathEscape(id) + more }

func (r taskRoot) name() string {
	if r == "/v1/videos/" {
		return "video"
	}
	return "task"
}

type videoCreateCmd struct {
	clientFlags

	Model          string        `help:"Public model name; none: the gateway's default." placeholder:"MODEL"`
	Prompt         string        `help:"Description of the video." placeholder:"TEXT"`
	Seconds        string        `help:"Length in seconds; none: the vendor's default." placeholder:"N"`
	Size           string        `help:"Width and height in pixels, such as 1280x720; none: the vendor's default." placeholder:"WxH"`
	Image          string        `help:"Reference image: a file, or a URL for the vendor to fetch." placeholder:"FILE|URL"`
	IdempotencyKey string        `help:"Requests with the same key return the same task; none: a random key." placeholder:"KEY"`
	Wait           bool          `help:"Wait until the task ends."`
	Output         string        `short:"o" help:"Wait, then fetch the video into this file." placeholder:"FILE"`
	Every          time.Duration `help:"Minimum time between two reads of the task." default:"2s"`
}

// Run creates the task, only once even if the request is sent again.
func (c *videoCreateCmd) Run(ctx context.Context, p *Program) error {
	client, err := c.client(p)
	if err != nil {
		return err
	}
	if c.Prompt == "" && c.Image == "" {
		return &UsageError{Err: errors.New("--prompt or --image is required")}
	}
	body, contentType, err := c.body()
	if err != nil {
		return err
	}
	key := c.IdempotencyKey
	if key == "" {
		key = "cli-" + rand.Text()
	}
	header := http.Header{"Content-Type": {contentType}, "Idempotency-Key": {key}}
	task, err := client.task(ctx, request{method: http.MethodPost, path: "/v1/videos", header: header, body: body, tries: clientTries})
	if err != nil {
		if _, again := retryable(err); again || ctx.Err() != nil {
			fmt.Fprintf(p.Stderr, "The task may exist. The same command with --idempotency-key %s returns it and never pays twice.\n", key)
		}
		return err
	}
	if !c.Wait && c.Output == "" {
		client.note("To wait for it: gateway video wait %s", task.ID)
		return client.print(task)
	}
	client.note("task %s", task.ID)
	return client.finish(ctx, "/v1/videos/", task.ID, c.Every, c.Output)
}

// body is JSON, or a form if it contains a file.
func (c *videoCreateCmd) body() (body []byte, contentType string, err error) {
	values := map[string]any{}
	for name, value := range map[string]string{"model": c.Model, "prompt": c.Prompt, "seconds": c.Seconds, "size": c.Size} {
		if value != "" {
			values[name] = value
		}
	}
	remote := strings.HasPrefix(c.Image, "http://") || strings.HasPrefix(c.Image, "https://") || strings.HasPrefix(c.Image, "data:")
	if c.Image == "" || remote {
		if remote {
			values["input_reference"] = map[string]string{"image_url": c.Image}
		}
		body, err = json.Marshal(values)
		return body, "application/json", err
	}
	image, err := os.ReadFile(c.Image)
	if err != nil {
		return nil, "", fmt.Errorf("read the image: %w", err)
	}
	var text bytes.Buffer
	form := multipart.NewWriter(&text)
	for name, value := range values {
		err = errors.Join(err, form.WriteField(name, value.(string)))
	}
	part, failed := form.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {multipart.FileContentDisposition("input_reference", filepath.Base(c.Image))},
		"Content-Type":        {http.DetectContentType(image)},
	})
	if failed == nil {
		_, failed = part.Write(image)
	}
	err = errors.Join(err, failed, form.Close())
	return text.Bytes(), form.FormDataContentType(), err
}

type videoDownloadCmd struct {
	ownTask

	Output string `short:"o" help:"File to write; none: the task id with .mp4." placeholder:"FILE"`
	Index  int    `help:"Index of the video, from 0."`
}

// Run fetches the video. It continues an earlier incomplete download.
func (c *videoDownloadCmd) Run(ctx context.Context, p *Program) error {
	if c.Index < 0 {
		return &UsageError{Err: errors.New("--index: is negative; the first video is 0")}
	}
	client, err := c.client(p)
	if err != nil {
		return err
	}
	output := c.Output
	if output == "" {
		output = c.ID + ".mp4"
	}
	file, err := client.download(ctx, videoContent(c.ID, c.Index), output)
	if err != nil {
		return err
	}
	return p.sentence(file, "%s  %d bytes  sha256 %s\n", file.Name, file.Size, file.SHA256)
}
