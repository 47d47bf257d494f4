package e2e_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"

	"modelrelay/dev/e2e/stack"
)

// loggedCall is a call as `gateway calls --json` has it.
type loggedCall struct {
	ID       string `json:"id"`
	VendorID string `json:"vendor_request_id"`
	Model    string `json:"model"`
	Token    string `json:"token_name"`
	Status   int    `json:"status"`
}

// What is said in calls must stand nowhere in their log.
const callCanary = "canary-in-a-prompt"

// chatOnce makes one call and returns its id.
func chatOnce(t *testing.T, g *stack.Gateway, model string) string {
	t.Helper()
	answer := g.Call(t, stack.Request{
		Method: http.MethodPost, Path: "/v1/chat/completions",
		Body: fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%q}]}`, model, callCanary),
	})
	return answer.Header.Get("X-Request-Id")
}

// TestCallsHistory: the command and /admin/calls continue in the archive with calls that Redis no longer has.
func TestCallsHistory(t *testing.T) {
	t.Parallel()
	s := stack.SharedRelay(t).OwnS3()
	g := s.StartGateway(stack.GatewayOptions{AdminKey: stack.AdminKey, Calls: "recent: 100, retention: 48h"})
	const calls = 350
	ids := map[string]bool{}
	first := ""
	for range calls {
		id := chatOnce(t, g, "gpt-4o")
		ids[id] = true
		if first == "" {
			first = id
		}
	}
	g.Stop(t) // it writes what waits
	if n := s.CountObjects("calls/"); n == 0 {
		t.Fatal("the archive has no file of calls")
	}
	for object, err := range s.Archive().List(t.Context(), "calls/") {
		if err != nil {
			t.Fatal(err)
		}
		file, err := s.Archive().Open(t.Context(), object.Key)
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := zstd.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(unpacked)
		unpacked.Close()
		_ = file.Close()
		if err != nil || bytes.Count(text, []byte("\n")) == 0 || bytes.Contains(text, []byte(callCanary)) ||
			bytes.Contains(text, []byte(stack.Token)) {
			t.Errorf("%s: %v, %d lines, or what must not be in them", object.Key, err, bytes.Count(text, []byte("\n")))
		}
	}
	var listed []loggedCall
	if err := json.Unmarshal([]byte(g.Run("calls", "--json", "--limit", "1000")), &listed); err != nil {
		t.Fatal(err)
	}
	for _, call := range listed {
		if !ids[call.ID] {
			t.Errorf("%s is listed twice, or was never made", call.ID)
		}
		delete(ids, call.ID)
	}
	if len(ids) > 0 {
		t.Errorf("%d of %d calls are not listed", len(ids), calls)
	}
	g.Start()
	var one loggedCall
	g.CallJSON(t, stack.Request{Method: http.MethodGet, Path: "/admin/calls/" + first, Token: stack.AdminKey}, &one)
	if one.ID != first || one.Model != "gpt-4o" {
		t.Errorf("the first call by its id: %+v", one)
	}
	found, after := 0, ""
	for {
		var page struct {
			Data  []loggedCall `json:"data"`
			After *string      `json:"after"`
		}
		g.CallJSON(t, stack.Request{
			Method: http.MethodGet, Path: "/admin/calls?limit=120&after=" + url.QueryEscape(after), Token: stack.AdminKey,
		}, &page)
		found += len(page.Data)
		if page.After == nil {
			break
		}
		after = *page.After
	}
	if found != calls {
		t.Errorf("/admin/calls has %d calls page by page, want %d", found, calls)
	}
	table, err := csv.NewReader(bytes.NewReader(g.Call(t, stack.Request{
		Method: http.MethodGet, Path: "/admin/calls?format=csv&limit=1000", Token: stack.AdminKey,
	}).Body)).ReadAll()
	if err != nil || len(table) != calls+1 {
		t.Errorf("the table has %d lines, want %d and its head (%v)", len(table), calls, err)
	}
	s.S3.Kill()
	if answer := g.Call(t, stack.Request{
		Method: http.MethodGet, Path: "/admin/calls",
		Token: stack.AdminKey,
	}); answer.Status != http.StatusOK {
		t.Errorf("the newest calls without the archive: %d %s", answer.Status, answer.Body)
	}
	if answer := g.Call(t, stack.Request{
		Method: http.MethodGet, Path: "/admin/calls?after=" + url.QueryEscape(after),
		Token: stack.AdminKey,
	}); answer.Status != http.StatusServiceUnavailable {
		t.Errorf("older calls without the archive: %d %s", answer.Status, answer.Body)
	}
}

// TestCallsCommand: the command "gateway calls" lists, filters and follows calls, prints CSV, and finds a call by each of its ids.
func TestCallsCommand(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	g := stack.SharedRelay(t)
	gateway := g.StartGateway(stack.GatewayOptions{})
	follow := exec.CommandContext(t.Context(), stack.Bin.Gateway, "calls", "--follow", "--json", "--status", "failed", "--config",
		gateway.ConfigFile)
	lines, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	good, bad := chatOnce(t, gateway, "gpt-4o"), chatOnce(t, gateway, "no-such-model")
	var followed loggedCall
	if err := json.NewDecoder(lines).Decode(&followed); err != nil || followed.ID != bad || followed.Status != http.StatusNotFound {
		t.Errorf("followed %+v (%v), want %s", followed, err, bad)
	}
	if err := follow.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := follow.Wait(); err != nil {
		t.Errorf("an interrupted --follow: %v", err)
	}
	list := func(args ...string) (found []loggedCall) {
		t.Helper()
		text := gateway.Run(append([]string{"calls", "--json"}, args...)...)
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			t.Fatalf("%v: %v in %s", args, err, text)
		}
		return found
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{bad, good}},
		{[]string{"--limit", "1"}, []string{bad}},
		{[]string{"--model", "gpt-4o"}, []string{good}},
		{[]string{"--channel", "main"}, []string{good}},
		{[]string{"--fault", "any"}, []string{bad}},
		{[]string{"--status", "2xx"}, []string{good}},
		{[]string{"--token", "demo", "--since", "1h"}, []string{bad, good}},
		{[]string{"--until", "1h"}, nil},
		{[]string{"--slower", "1h"}, nil},
	} {
		var got []string
		for _, call := range list(c.args...) {
			got = append(got, call.ID)
		}
		if strings.Join(got, " ") != strings.Join(c.want, " ") {
			t.Errorf("%v: got %v, want %v", c.args, got, c.want)
		}
	}
	vendor := list("--model", "gpt-4o")[0].VendorID
	for _, id := range []string{good, vendor} {
		var one loggedCall
		if err := json.Unmarshal([]byte(gateway.Run("calls", id, "--json")), &one); err != nil || one.ID != good || id == "" {
			t.Errorf("%q: %+v (%v)", id, one, err)
		}
	}
	if text := gateway.Run("calls", good); !strings.Contains(text, "attempt 1") || !strings.Contains(text, "gpt-4o") {
		t.Errorf("one call for people: %s", text)
	}
	table, err := csv.NewReader(strings.NewReader(gateway.Run("calls", "--csv"))).ReadAll()
	if err != nil || len(table) != 3 || table[0][1] != "id" || table[1][1] != bad {
		t.Errorf("CSV %v (%v)", table, err)
	}
	for want, args := range map[string][]string{
		`has the id "req_none"`: {"calls", "req_none"},
		"--status":              {"calls", "--status", "odd"},
		"--since":               {"calls", "--since", "soon"},
		"--limit":               {"calls", "--limit", "0"},
	} {
		if _, stderr, err := gateway.Command(t.Context(), args...); err == nil || !strings.Contains(stderr, want) {
			t.Errorf("%v: %v %s", args, err, stderr)
		}
	}
	if text := gateway.Run("calls"); strings.Contains(text, callCanary) || len(strings.Split(strings.TrimSpace(text), "\n")) != 2 {
		t.Errorf("for people: %s", text)
	}
}
