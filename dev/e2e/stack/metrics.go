package stack

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// Sample is one series as Prometheus reads it.
type Sample struct {
	Name   string
	Labels map[string]string
	Value  float64
}

// Samples are all series of one scrape.
type Samples []Sample

// Metrics reads what Prometheus would read of the gateway.
func (g *Gateway) Metrics(ctx context.Context) Samples {
	g.Stack.T.Helper()
	_, rest, found := strings.Cut(g.Out.Text(), "msg=metrics address=")
	if !found {
		g.Stack.T.Fatal("the gateway does not say where its metrics are")
	}
	addr, _, _ := strings.Cut(rest, " ")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		g.Stack.T.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		g.Stack.T.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		g.Stack.T.Fatalf("metrics: status %d, %v", resp.StatusCode, err)
	}
	var all Samples
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		all = append(all, parseSample(g.Stack.T, strings.TrimSpace(line)))
	}
	return all
}

// parseSample reads a line such as `name{label="value"} 1`.
func parseSample(t *testing.T, line string) Sample {
	t.Helper()
	s := Sample{Labels: map[string]string{}}
	rest := line
	if i := strings.IndexAny(line, "{ "); i >= 0 {
		s.Name, rest = line[:i], line[i:]
	}
	for strings.HasPrefix(rest, "{") || strings.HasPrefix(rest, ",") {
		name, quoted, _ := strings.Cut(rest[1:], "=")
		text, err := strconv.QuotedPrefix(quoted)
		if err != nil {
			t.Fatalf("no sample: %s", line)
		}
		if s.Labels[name], err = strconv.Unquote(text); err != nil {
			t.Fatalf("no sample: %s", line)
		}
		rest = quoted[len(text):]
	}
	var err error
	if s.Value, err = strconv.ParseFloat(strings.TrimSpace(strings.TrimPrefix(rest, "}")), 64); err != nil {
		t.Fatalf("no sample: %s", line)
	}
	return s
}

// Sum adds up the series of the name that have all the labels, which come in pairs.
func (all Samples) Sum(name string, labels ...string) (total float64, found int) {
next:
	for _, s := range all {
		for i := 0; i < len(labels); i += 2 {
			if s.Labels[labels[i]] != labels[i+1] {
				continue next
			}
		}
		if s.Name == name {
			total += s.Value
			found++
		}
	}
	return total, found
}
