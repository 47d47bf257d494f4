package main_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestHealth: the program asks the process of the same configuration, as the image's health check does.
func TestHealth(t *testing.T) {
	t.Parallel()
	u := startUpstream(t, "A")
	close(u.release)
	s := serve(t, withMetrics(configFor(redisAway, u.URL, "sk-demo", "")), "--worker=false")
	metrics := decode[struct{ Address string }](t, s.err.line(t, 1, `"msg":"metrics"`)).Address
	file := func(listen, metrics string) string {
		return writeFile(t, "gateway.yaml", fmt.Sprintf("listen: %q\nmetrics: {listen: %q}\n%s", listen, metrics,
			"redis: {url: \"redis://127.0.0.1:1/0\"}\ntokens: [{name: demo, key: sk-demo}]\n"))
	}
	_, apiPort, _ := cutLast(s.url, ":")
	here := file("0.0.0.0:"+apiPort, metrics)
	for _, test := range []struct {
		name, file string
		args       []string
		code       int
		says       string
	}{
		{"lives", here, nil, 0, "ok\n"},
		{"as JSON", here, []string{"--json"}, 0, `"ok"`},
		{"relay", here, []string{"--for", "relay"}, 1, "listen: 503"}, // Redis never answered it
		{"video", here, []string{"--for", "video"}, 1, `"redis"`},
		{"unknown part", here, []string{"--for", "chat"}, 2, "--for: must be relay or video"},
		{"nobody there", file("127.0.0.1:1", "127.0.0.1:2"), nil, 1, "metrics.listen: no answer"},
		{"no address", file("127.0.0.1:1", ""), nil, 1, "metrics.listen is empty"},
		{"port 0", file("127.0.0.1:0", ""), []string{"--for", "relay"}, 1, "listen: port 0"},
	} {
		stdout, stderr, code := run(t, nil, append([]string{"health", "--config", test.file}, test.args...)...)
		if code != test.code || !strings.Contains(stdout+stderr, test.says) {
			t.Errorf("%s: exit code %d, %q %q; want %d and %q", test.name, code, stdout, stderr, test.code, test.says)
		}
	}
}
