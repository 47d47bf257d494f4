package main_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// call is the task of a background call.
func call(status, rest string) string {
	return `{"id":"call_1","object":"task","kind":"call","operation":"POST /v1/chat/completions","model":"gpt-4o","status":"` + status +
		`","stage":null,` +
		`"queue_position":null,"attempts":1,"created_at":1800000000,"started_at":1800000001,"completed_at":null,"expires_at":null,` + rest +
		`,"metadata":{}}`
}

const unfinishedCall = `"usage":null,"cost":null,"error":null,"result":null`

func TestTaskCommandOfAClient(t *testing.T) {
	t.Parallel()
	const body = `{"choices":[]}`
	done := call("completed", `"usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7},"cost":0.25,"error":null,`+
		`"result":{"url":"/v1/tasks/call_1/result","status_code":200,"content_type":"application/json","bytes":14,"sha256":""}`)
	fake, env := startFakeGateway(t, map[string][]http.HandlerFunc{
		"GET /v1/tasks/call_1":         {answer(200, call("queued", unfinishedCall)), answer(200, done)},
		"GET /v1/tasks/call_1/result":  {answer(200, body)},
		"GET /v1/tasks/call_2/result":  {answer(202, call("queued", unfinishedCall))},
		"POST /v1/tasks/call_1/cancel": {answer(200, call("cancelled", unfinishedCall))},
		"GET /v1/tasks/call_3": {answer(200,
			call("failed", `"usage":null,"cost":null,"error":{"code":"queue_timeout","message":"No upstream."},"result":null`))},
		"GET /v1/tasks/call_4":    {answer(200, call("cancelled", unfinishedCall))},
		"DELETE /v1/tasks/call_1": {answer(200, `{"id":"call_1","object":"task.deleted","deleted":true}`)},
	})
	file := filepath.Join(t.TempDir(), "answer.json")
	for _, test := range []struct {
		args string
		code int
		want []string
	}{
		{"task get call_1", 0, []string{"POST /v1/chat/completions", "queued"}},
		{"task wait --every 0 -o " + file + " call_1", 0, []string{"3 in, 4 out", "0.25", "200 application/json, 14 bytes"}},
		{"task result -o - call_1", 0, []string{body}},
		{"task result call_2", 1, []string{"has not ended", "gateway task wait call_2"}},
		{"task cancel call_1", 0, []string{"cancelled"}},
		{"task wait --every 0 call_3", 1, []string{"call_3 failed: No upstream. (queue_timeout)"}},
		{"task wait --every 0 call_4", 1, []string{"call_4 was cancelled"}},
		{"task delete call_1", 0, []string{"call_1 is deleted"}},
	} {
		stdout, stderr, code := run(t, env, strings.Fields(test.args)...)
		for _, want := range test.want {
			if code != test.code || !strings.Contains(stdout+stderr, want) {
				t.Errorf("%s: code %d, want %d and %q:\n%s%s", test.args, code, test.code, want, stdout, stderr)
			}
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != body {
		t.Errorf("the output has %s (%v)", got, err)
	}
	if waits, _ := fake.requests(http.MethodGet); waits[1].URL.RawQuery != "wait=20" {
		t.Errorf("waited with %q", waits[1].URL.RawQuery)
	}
}
