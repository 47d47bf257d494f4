package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"modelrelay/dev/e2e/stack"
)

const (
	alertsFile    = repo + "/dev/helm/modelrelay/files/alerts.yml"
	dashboardFile = repo + "/dev/compose/grafana/dashboards/gateway.json"
)

// query is an expression of the dashboard or of an alert, and where it stands. labels are those that its texts name.
type query struct {
	at, expr string
	labels   []string
}

// label finds the labels in the texts of an alert or a legend.
var label = regexp.MustCompile(`\$labels\.(\w+)|\{\{\s*(\w+)\s*\}\}`)

func labelsIn(text string) []string {
	var names []string
	for _, match := range label.FindAllStringSubmatch(text, -1) {
		names = append(names, match[1]+match[2])
	}
	return names
}

// alerts reads the rules as Prometheus does, which refuses what it does not understand.
func alerts(t *testing.T) []query {
	t.Helper()
	groups, errs := rulefmt.ParseFile(alertsFile, false, model.UTF8Validation)
	if len(errs) > 0 {
		t.Fatalf("alerts: %v", errs)
	}
	var all []query
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if rule.Annotations["summary"] == "" || rule.Annotations["runbook"] == "" || rule.Labels["severity"] == "" {
				t.Errorf("alert %s lacks a summary, a runbook line or a severity", rule.Alert)
			}
			all = append(all, query{"alert " + rule.Alert, rule.Expr, labelsIn(rule.Annotations["summary"])})
		}
	}
	return all
}

// panels reads the queries of the dashboard, those that fill its variables among them.
func panels(t *testing.T) []query {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Templating struct {
			List []struct{ Name, Definition string }
		}
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatalf("%s: %v", filepath.Base(dashboardFile), err)
	}
	var all []query
	values := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)
	for _, variable := range dashboard.Templating.List {
		match := values.FindStringSubmatch(variable.Definition)
		if match == nil {
			t.Fatalf("variable %s: %q is not understood", variable.Name, variable.Definition)
		}
		all = append(all, query{"variable " + variable.Name, match[1], []string{match[2]}})
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			all = append(all, query{
				"panel " + panel.Title, strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"),
				labelsIn(target.LegendFormat),
			})
		}
	}
	return all
}

// unknownTo lists what a query names that no process exports.
func unknownTo(all stack.Samples, q query) []string {
	expr, err := parser.ParseExpr(q.expr)
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", q.at, err)}
	}
	var wrong []string
	complain := func(format string, args ...any) { wrong = append(wrong, q.at+": "+fmt.Sprintf(format, args...)) }
	// Prometheus adds these to every series: app by the compose stack's configuration and by the chart's ServiceMonitor.
	added := map[string]bool{"app": true, "job": true, "instance": true}
	named := maps.Clone(added)
	var grouped []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			ours := slices.ContainsFunc(node.LabelMatchers, func(m *labels.Matcher) bool { return m.String() == `app="modelrelay"` })
			if !ours && !strings.HasPrefix(node.Name, "gateway_") {
				complain("%s selects the series of other programs as well: it lacks app=\"modelrelay\"", node.Name)
			}
			if node.Name == "up" { // Prometheus's own
				return nil
			}
			has := labelsOf(all, node.Name)
			if has == nil {
				complain("nobody exports %s", node.Name)
				return nil
			}
			for name := range has {
				named[name] = true
			}
			for _, m := range node.LabelMatchers {
				values, ok := has[m.Name]
				switch {
				case m.Name == model.MetricNameLabel, added[m.Name] && !ok:
				case !ok:
					complain("%s has no label %s", node.Name, m.Name)
				case m.Type == labels.MatchEqual && !values[m.Value]:
					complain("%s is never %s=%q", node.Name, m.Name, m.Value)
				}
			}
		case *parser.AggregateExpr:
			grouped = append(grouped, node.Grouping...)
		case *parser.BinaryExpr:
			if node.VectorMatching != nil {
				grouped = append(grouped, node.VectorMatching.MatchingLabels...)
			}
		}
		return nil
	})
	for _, name := range slices.Concat(grouped, q.labels) {
		if !named[name] {
			complain("no series of it has the label %s", name)
		}
	}
	return wrong
}

// labelsOf are the values of each label of a name; nil where no process exports it.
func labelsOf(all stack.Samples, name string) map[string]map[string]bool {
	var has map[string]map[string]bool
	for _, s := range all {
		if s.Name != name {
			continue
		}
		if has == nil {
			has = map[string]map[string]bool{}
		}
		for label, value := range s.Labels {
			if has[label] == nil {
				has[label] = map[string]bool{}
			}
			has[label][value] = true
		}
	}
	return has
}

// wantExported holds the dashboard and the alerts to what a gateway exports, and the check to what it must find.
func wantExported(t *testing.T, got stack.Samples) {
	t.Helper()
	for _, q := range slices.Concat(alerts(t), panels(t)) {
		for _, wrong := range unknownTo(got, q) {
			t.Error(wrong)
		}
	}
	for expr, want := range map[string]string{
		`sum(rate(gateway_atempts_total[5m]))`:                         "nobody exports gateway_atempts_total",
		`gateway_attempts_total{chanel="main"}`:                        "gateway_attempts_total has no label chanel",
		`sum by (chanel) (gateway_attempts_total)`:                     "no series of it has the label chanel",
		`gateway_tasks_ended_total{code="upstream_lost"}`:              `gateway_tasks_ended_total is never code="upstream_lost"`,
		`histogram_quantile(0.9, gateway_task_duration_seconds_buckt)`: "nobody exports gateway_task_duration_seconds_buckt",
		`go_goroutines`: "go_goroutines selects the series of other programs",
		`sum(`:          "parse error",
	} {
		if found := unknownTo(got, query{at: "x", expr: expr}); len(found) != 1 || !strings.Contains(found[0], want) {
			t.Errorf("%s: found %q, want %q", expr, found, want)
		}
	}
	// A metric of this product that no panel reads is logged, and fails nothing.
	looked := map[string]bool{}
	for _, q := range slices.Concat(alerts(t), panels(t)) {
		for _, name := range regexp.MustCompile(`\w+`).FindAllString(q.expr, -1) {
			looked[name] = true
		}
	}
	idle := map[string]bool{}
	for _, s := range got {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(s.Name, "_bucket"), "_count"), "_sum")
		if strings.HasPrefix(base, "gateway_") && !looked[base] && !looked[base+"_bucket"] && !looked[base+"_count"] && !looked[base+"_sum"] {
			idle[base] = true
		}
	}
	if len(idle) > 0 {
		t.Logf("exported, and on no panel: %v", slices.Sorted(maps.Keys(idle)))
	}
}
