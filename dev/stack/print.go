package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"modelrelay/dev/settings"
)

// printStack says what a person needs: where everything is, a token, commands to paste, and a link to the console unless it
// is "". Its last line is the ready line.
func (s *stack) printStack(at places, config *gatewayConfig, console string) {
	token := config.token
	url := "http://" + at.gateway
	gateway := quote(s.shown(s.gatewayBinary()))
	s.printPlaces(at, [][2]string{
		{"gateway", url + "  (its documentation: " + url + "/docs)"},
		{"metrics", metricsPlace(at)},
		{"token", token},
		{"admin key", config.admin},
		{"configuration", s.shown(s.gatewayConfig()) + "  (channels and limits are read again when it changes)"},
	})
	chat := func(flag, stream, prompt string) string {
		return fmt.Sprintf(`curl %s%s/v1/chat/completions -H "Authorization: Bearer %s" -H 'Content-Type: application/json' -d '{"model":"gpt-4o-mini",%s"messages":[{"role":"user","content":"%s"}]}'`,
			flag, url, token, stream, prompt)
	}
	fmt.Fprintf(s.stdout, `
A chat:
  %s

A streamed chat:
  %s

A video, from the request to a file that plays:
  export GATEWAY_URL=%s GATEWAY_TOKEN=%s
  %s video create --model sora-2 --prompt 'A cat plays the piano' --seconds 4 --output cat.mp4

What was used and what it cost, by model:
  curl '%s/admin/usage?group_by=token,model' -H "Authorization: Bearer %s"

The video's workflow, in a browser:
  http://%s/namespaces/%s/workflows

`, chat("", "", "Say hello"), chat("-N ", `"stream":true,`, "Tell me a story"), url, token, gateway, url, config.admin, at.ui, settings.Namespace)
	if console != "" {
		fmt.Fprintln(s.stdout, "console", console)
	}
	fmt.Fprintln(s.stdout, readyWord, url)
}

func metricsPlace(at places) string {
	if at.metrics == "" {
		return "as the configuration says"
	}
	return "http://" + at.metrics + "/metrics"
}

// printServices says where the services are and what a gateway.yaml needs to use them.
func (s *stack) printServices(at places) {
	s.printPlaces(at, nil)
	token, err := s.demoToken()
	if err != nil {
		token = "sk-demo"
	}
	fmt.Fprint(s.stdout, "\nFor a gateway.yaml:\n\n")
	for _, section := range s.serviceSections(at, token) {
		fmt.Fprint(s.stdout, section)
	}
	fmt.Fprintln(s.stdout)
	fmt.Fprintln(s.stdout, readyWord, "http://"+at.ui)
}

func (s *stack) printPlaces(at places, more [][2]string) {
	kept := s.shown(s.data)
	if s.temporary {
		kept += "  (removed at the end; --data DIR keeps it)"
	}
	redis := at.redis
	if forgets() {
		redis += "  (embedded, since redis-server is not on PATH: tokens made at run time end with it)"
	}
	table := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
	for _, row := range append([][2]string{
		{"temporal", at.temporal},
		{"temporal UI", "http://" + at.ui},
		{"redis", redis},
		{"object store", "http://" + at.s3 + "  (bucket " + settings.Bucket + ")"},
		{"upstreams", "http://" + at.upstream + "  (they only pretend)"},
		{"data", kept},
		{"logs", s.shown(s.logs())},
	}, more...) {
		fmt.Fprintln(table, strings.Join(row[:], "\t"))
	}
	_ = table.Flush() // as unwritable as every other line then
}
