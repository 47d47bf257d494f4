package main_test

import (
	"strings"
	"testing"
)

// TestWarnings: config check, the start and a reload warn of keys that can be guessed, and of a listener without an operator.
// They print no key, and do not name long ones.
func TestWarnings(t *testing.T) {
	t.Parallel()
	const short, long = "sk-guess-me", "sk-0123456789-0123456789"
	text := strings.Replace(configFor(redisAway, "http://127.0.0.1:1", short, ""),
		"tokens: [", "tokens: [{name: long, key: "+long+"}, ", 1)
	path := writeFile(t, "gateway.yaml", "admin: {listen: 127.0.0.1:0}\n"+text)
	stdout, stderr, code := run(t, nil, "config", "check", "--config", path)
	for _, want := range []string{"warning   tokens[1].key: has fewer than 20 characters", "warning   admin.listen: has no effect"} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("code %d, want %q in %s%s", code, want, stdout, stderr)
		}
	}
	if strings.Contains(stdout, short) || strings.Contains(stdout, "tokens[0]") {
		t.Errorf("printed %s", stdout)
	}
	stdout, _, _ = run(t, nil, "config", "check", "--json", "--config", path)
	if got := decode[struct{ Warnings []string }](t, stdout).Warnings; len(got) != 2 {
		t.Errorf("as JSON %q", got)
	}

	s := serve(t, text, "--worker=false")
	s.rewrite("operators: [{name: anna, key: sk-annas-guess, role: operator}]\nadmin_key: too-short\n" + text)
	for n, want := range []string{"tokens[1].key: has fewer", "operators[0].key: has fewer"} { // at the start, and at the reload
		line := s.err.line(t, n+1, "may not be what is wanted")
		if !strings.Contains(line, want) || strings.Contains(line, short) || strings.Contains(line, "tokens[0]") {
			t.Errorf("want %q, logged %s", want, line)
		}
	}
}

// TestProxyWarning: the file has to name the kind of the proxies that it trusts.
func TestProxyWarning(t *testing.T) {
	t.Parallel()
	text := configFor(redisAway, "http://127.0.0.1:1", "sk-0123456789-0123456789", "")
	for front, want := range map[string]bool{
		"": false, "trusted_proxies: [10.0.0.0/16]\n": true, "trusted_proxies: [10.0.0.0/16]\nproxy_protocol: true\n": false,
		"trusted_proxies: [10.0.0.0/16]\nproxy_protocol: false\n": false,
	} {
		stdout, stderr, code := run(t, nil, "config", "check", "--config", writeFile(t, "gateway.yaml", front+text))
		if got := strings.Contains(stdout, "warning   trusted_proxies: X-Forwarded-For and Forwarded count on every connection"); code != 0 ||
			got != want {
			t.Errorf("%q: code %d, warns %v, want %v: %s%s", front, code, got, want, stdout, stderr)
		}
	}
}

// TestDeploymentWarning: while Temporal does not answer, workers of a deployment may get no tasks.
func TestDeploymentWarning(t *testing.T) {
	t.Parallel()
	text := configFor(redisAway, "http://127.0.0.1:1", "sk-0123456789-0123456789", "")
	for section, want := range map[string]string{
		"": "",
		"worker: {deployment: videos, build_id: \"2\"}\n": "warning   worker.deployment: workers of build 2 get no tasks until it is the current version; run: " +
			"temporal worker deployment set-current-version --deployment-name videos --build-id 2 --namespace default --address 127.0.0.1:1\n",
	} {
		stdout, stderr, code := run(t, nil, "config", "check", "--config", writeFile(t, "gateway.yaml", section+text))
		if got := strings.Contains(stdout, "worker.deployment"); code != 0 || got != (want != "") || !strings.Contains(stdout, want) {
			t.Errorf("%q: code %d, want %q: %s%s", section, code, want, stdout, stderr)
		}
	}
}
