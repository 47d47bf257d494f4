package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"time"
)

type videoCreateCmd struct {
	callerFlags

	Model          string        `help:"Public model name; none: the gateway's default." placeholder:"MODEL"`
	Prompt         string        `help:"What the video shows." placeholder:"TEXT"`
	Seconds        string        `help:"Length in seconds; none: the vendor's default." placeholder:"N"`
	Size           string        `help:"Width and height in pixels, such as 1280x720; none: the vendor's default." placeholder:"WxH"`
	Image          string        `help:"Reference image: a file, or a URL for the vendor to fetch." placeholder:"FILE|URL"`
	IdempotencyKey string        `help:"Repeats with this key find the same task; none: a random one." placeholder:"KEY"`
	Wait           bool          `help:"Wait until the task ends."`
	Output         string        `short:"o" help:"Wait, then fetch the video into this file." placeholder:"FILE"`
	Every          time.Duration `help:"Shortest time between two reads of the task." default:"2s"`
}

// Run makes the task, once however often the request has to be sent.
func (c *videoCreateCmd) Run(ctx context.Context, p *Program) error {
	client, err := c.client(p)
	if err != nil {
		return err
	}
	if c.Prompt == "" && c.Image == "" {
		return &UsageError{Err: errors.New("--prompt or --image is needed")}
	}
	r, err := c.request()
	if err != nil {
		return err
	}
	key := c.IdempotencyKey
	if key == "" {
		key = "cli-" + rand.Text()
	}
	r.header.Set("Idempotency-Key", key)
	task, err := client.task(ctx, r)
	if err != nil {
		if _, again := passing(err); again || ctx.Err() != nil {
			fmt.Fprintf(client.p.Stderr, "Whether the task was made is not known. The same command with --idempotency-key %s finds it and never pays twice.\n", key)
		}
		return err
	}
	if !c.Wait && c.Output == "" {
		if !client.p.JSON {
			fmt.Fprintf(client.p.Stderr, "To wait for it: gateway video wait %s\n", task.ID)
		}
		return client.print(task)
	}
	if !client.p.JSON {
		fmt.Fprintf(client.p.Stderr, "task %s\n", task.ID)
	}
	return client.finish(ctx, task.ID, c.Every, c.Output)
}

// request is a JSON body, or a form where a file goes along.
func (c *videoCreateCmd) request() (request, error) {
	r := request{method: http.MethodPost, path: "/v1/videos", header: http.Header{}}
	values := [][2]string{{"model", c.Model}, {"prompt", c.Prompt}, {"seconds", c.Seconds}, {"size", c.Size}}
	remote := strings.HasPrefix(c.Image, "http://") || strings.HasPrefix(c.Image, "https://") || strings.HasPrefix(c.Image, "data:")
	if c.Image == "" || remote {
		body := map[string]any{}
		for _, value := range values {
			if value[1] != "" {
				body[value[0]] = value[1]
			}
		}
		if remote {
			body["input_reference"] = map[string]string{"image_url": c.Image}
		}
		text, err := json.Marshal(body)
		if err != nil {
			return request{}, fmt.Errorf("write the request: %w", err)
		}
		r.body = text
		r.header.Set("Content-Type", "application/json")
		return r, nil
	}
	image, err := os.ReadFile(c.Image)
	if err != nil {
		return request{}, fmt.Errorf("read the image: %w", err)
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, value := range values {
		if value[1] != "" {
			err = errors.Join(err, form.WriteField(value[0], value[1]))
		}
	}
	head := textproto.MIMEHeader{}
	head.Set("Content-Disposition", multipart.FileContentDisposition("input_reference", filepath.Base(c.Image)))
	head.Set("Content-Type", http.DetectContentType(image))
	part, partErr := form.CreatePart(head)
	if partErr == nil {
		_, partErr = io.Copy(part, bytes.NewReader(image))
	}
	if err := errors.Join(err, partErr, form.Close()); err != nil {
		return request{}, fmt.Errorf("write the form: %w", err)
	}
	r.body = body.Bytes()
	r.header.Set("Content-Type", form.FormDataContentType())
	return r, nil
}
