// Command goclient drives every operation of the gateway with the client that oapi-codegen makes of its OpenAPI document.
// That client is generated beside this file by the test that runs it, and is not committed.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
)

// step is one call of operations.json. Names in braces stand for what an earlier step kept.
type step struct {
	Operation string            `json:"operation"`
	Path      map[string]string `json:"path"`
	Query     map[string]any    `json:"query"`
	Headers   map[string]string `json:"headers"`
	Body      json.RawMessage   `json:"body"`
	// Form and File make a multipart body.
	Form map[string]string `json:"form"`
	File string            `json:"file"`
	// Status is what must come, 200 where it is absent.
	Status int `json:"status"`
	// Keep names members of the answer for later steps.
	Keep map[string]string `json:"keep"`
	// Raw is an answer whose media type the document leaves open.
	Raw bool `json:"raw"`
	// Admin sends the operator's key in place of the token.
	Admin bool `json:"admin"`
}

func main() {
	if err := drive(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func drive(plan string) error {
	text, err := os.ReadFile(plan)
	if err != nil {
		return err
	}
	var steps []step
	if err := json.Unmarshal(text, &steps); err != nil {
		return err
	}
	client, err := NewClientWithResponses(os.Getenv("GATEWAY_URL"))
	if err != nil {
		return err
	}
	kept := map[string]string{"client": "go-client"}
	for _, s := range steps {
		if err := s.run(client, kept); err != nil {
			return fmt.Errorf("%s: %w", s.Operation, err)
		}
		fmt.Println("ok", s.Operation)
	}
	return nil
}

// run calls the operation's method, whose arguments are the context, the path's parameters in the order of the path,
// those of query and header as a struct, and the body.
func (s step) run(client *ClientWithResponses, kept map[string]string) error {
	fill := func(text string) string {
		for name, value := range kept {
			text = strings.ReplaceAll(text, "{"+name+"}", value)
		}
		return text
	}
	name := strings.ToUpper(s.Operation[:1]) + s.Operation[1:]
	if s.Form != nil {
		name += "WithBody"
	}
	method := reflect.ValueOf(client).MethodByName(name + "WithResponse")
	if !method.IsValid() {
		return fmt.Errorf("the client has no method %sWithResponse", name)
	}
	args := []reflect.Value{reflect.ValueOf(context.Background())}
	for _, name := range slices.Sorted(maps.Keys(s.Path)) { // the order of the path, in those that have two
		args = append(args, reflect.ValueOf(fill(s.Path[name])))
	}
	kind := method.Type()
	for len(args) < kind.NumIn()-1 {
		in := kind.In(len(args))
		switch {
		case in.Kind() == reflect.Pointer: // the parameters of query and header
			params := reflect.New(in.Elem())
			query, err := json.Marshal(s.Query)
			if err != nil {
				return err
			}
			if err := json.Unmarshal(query, params.Interface()); err != nil {
				return fmt.Errorf("parameters: %w", err)
			}
			args = append(args, params)
		case in.Kind() == reflect.String: // the content type, and the body after it
			var form bytes.Buffer
			writer := multipart.NewWriter(&form)
			for field, value := range s.Form {
				_ = writer.WriteField(field, value)
			}
			if s.File != "" {
				file, _ := writer.CreateFormFile(s.File, "sound.wav")
				_, _ = file.Write([]byte("RIFF\x24\x00\x00\x00WAVEfmt "))
			}
			_ = writer.Close()
			args = append(args, reflect.ValueOf(writer.FormDataContentType()), reflect.ValueOf(io.Reader(&form)))
		default:
			body := reflect.New(in)
			if err := json.Unmarshal([]byte(fill(string(s.Body))), body.Interface()); err != nil {
				return fmt.Errorf("body: %w", err)
			}
			args = append(args, body.Elem())
		}
	}
	args = append(args, reflect.ValueOf(RequestEditorFn(func(_ context.Context, req *http.Request) error {
		key := os.Getenv("GATEWAY_TOKEN")
		if s.Admin {
			key = os.Getenv("GATEWAY_ADMIN_KEY")
		}
		req.Header.Set("Authorization", "Bearer "+key)
		for name, value := range s.Headers {
			req.Header.Set(name, value)
		}
		return nil
	})))
	out := method.Call(args)
	if err, ok := out[1].Interface().(error); ok && err != nil {
		return err
	}
	return s.judge(out[0].Elem(), kept)
}

// judge checks the status, and that a JSON answer of it was read into its type.
func (s step) judge(answer reflect.Value, kept map[string]string) error {
	resp := answer.FieldByName("HTTPResponse").Interface().(*http.Response)
	body := answer.FieldByName("Body").Bytes()
	want := max(s.Status, 0)
	if want == 0 {
		want = http.StatusOK
	}
	if resp.StatusCode != want {
		return fmt.Errorf("got %d, want %d: %.300s", resp.StatusCode, want, body)
	}
	if !s.Raw && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		typed := answer.FieldByName(fmt.Sprintf("JSON%d", want))
		if !typed.IsValid() || typed.IsNil() {
			return fmt.Errorf("the client has no type for the JSON of a %d: %.300s", want, body)
		}
	}
	if len(s.Keep) > 0 {
		var members map[string]any
		if err := json.Unmarshal(body, &members); err != nil {
			return err
		}
		for name, member := range s.Keep {
			kept[name] = fmt.Sprint(members[member])
		}
	}
	return nil
}
