package compose_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"modelrelay/dev/settings"
)

// alerts is the folder of the alert rules, seen from this package. The chart installs them as well.
const alerts = "../helm/modelrelay/files"

// TestScrapes holds that Prometheus reads gateway and worker at their addresses and labels what it reads as the alerts
// expect, has the rules, and is of the version whose parser checks them.
func TestScrapes(t *testing.T) {
	t.Parallel()
	var gateway struct{ Metrics struct{ Listen string } }
	read(t, "gateway/gateway.yaml", &gateway)
	var config struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			JobName       string `yaml:"job_name"`
			StaticConfigs []struct {
				Targets []string
				Labels  map[string]string
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	read(t, "prometheus/prometheus.yml", &config)
	var targets []string
	for _, job := range config.ScrapeConfigs {
		for _, static := range job.StaticConfigs {
			targets = append(targets, job.JobName+" "+strings.Join(static.Targets, " ")+" "+static.Labels["app"])
		}
	}
	p := port(gateway.Metrics.Listen)
	if p != port(settings.MetricsAddress) {
		t.Errorf("metrics are at %s, want the port of the embedded stack", gateway.Metrics.Listen)
	}
	if want := []string{"gateway gateway:" + p + " modelrelay", "worker worker:" + p + " modelrelay"}; !slices.Equal(targets, want) {
		t.Errorf("scraped: %v, want %v", targets, want)
	}
	services := compose(t).Services
	for _, want := range []string{"./dev/compose/prometheus:/etc/prometheus:ro", "./dev/helm/modelrelay/files:/etc/alerts:ro"} {
		if !slices.Contains(services["prometheus"].Volumes, want) {
			t.Errorf("prometheus mounts %v, want %s", services["prometheus"].Volumes, want)
		}
	}
	if want := []string{"/etc/alerts/alerts.yml"}; !slices.Equal(config.RuleFiles, want) {
		t.Errorf("rules: got %v, want %v", config.RuleFiles, want)
	}
	text(t, filepath.Join(alerts, "alerts.yml"))
	module := regexp.MustCompile(`(?m)^\s+github.com/prometheus/prometheus v0\.(\d)0?(\d+)\.(\d+)`).FindStringSubmatch(text(t,
		filepath.Join(root, "dev/e2e/go.mod")))
	if module == nil {
		t.Fatal("the parser that checks the rules is not in go.mod")
	}
	if want := "prom/prometheus:v" + strings.Join(module[1:], "."); services["prometheus"].Image != want {
		t.Errorf("compose runs %s, the rules are checked by the parser of %s", services["prometheus"].Image, want)
	}
}

// TestDashboard holds that Grafana finds its datasource and its dashboard.
func TestDashboard(t *testing.T) {
	t.Parallel()
	grafana := compose(t).Services["grafana"]
	const provisioning = "/etc/grafana/provisioning"
	if want := "./dev/compose/grafana:" + provisioning + ":ro"; !slices.Contains(grafana.Volumes, want) {
		t.Errorf("grafana mounts %v, want %s", grafana.Volumes, want)
	}
	var sources struct {
		Datasources []struct{ UID, Type, URL string }
	}
	read(t, "grafana/datasources/prometheus.yml", &sources)
	if len(sources.Datasources) != 1 || sources.Datasources[0].URL != "http://prometheus:"+port(prometheusAddress) {
		t.Fatalf("datasources: %+v", sources)
	}
	var providers struct {
		Providers []struct {
			Options struct{ Path string }
		}
	}
	read(t, "grafana/dashboards/dashboards.yml", &providers)
	if len(providers.Providers) != 1 || providers.Providers[0].Options.Path != provisioning+"/dashboards" {
		t.Errorf("dashboards: %+v", providers)
	}
	home := grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	file, ok := strings.CutPrefix(home, provisioning+"/")
	if !ok {
		t.Fatalf("the home dashboard is %q", home)
	}
	var dashboard struct {
		Panels []struct {
			ID         int
			Title      string
			Type       string
			Datasource struct{ UID string }
			Targets    []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(text(t, filepath.Join("grafana", file))), &dashboard); err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, panel := range dashboard.Panels {
		if seen[panel.ID] {
			t.Errorf("two panels have the id %d", panel.ID)
		}
		seen[panel.ID] = true
		if panel.Type != "row" && (panel.Datasource.UID != sources.Datasources[0].UID || len(panel.Targets) == 0) {
			t.Errorf("panel %q: datasource %q, %d queries", panel.Title, panel.Datasource.UID, len(panel.Targets))
		}
	}
	if len(seen) < 10 {
		t.Errorf("%d panels: the file was not understood", len(seen))
	}
}

// TestRunbook compares the entries of the runbook with the alerts.
func TestRunbook(t *testing.T) {
	t.Parallel()
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations struct{ Runbook string }
			}
		}
	}
	read(t, filepath.Join(alerts, "alerts.yml"), &rules)
	var alerts []string
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			alerts = append(alerts, rule.Alert)
			if rule.Annotations.Runbook == "" {
				t.Errorf("%s has no runbook line", rule.Alert)
			}
		}
	}
	book := text(t, filepath.Join(root, "cmd/gateway/docs/operate/runbook.md"))
	var entries []string
	for _, heading := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(book, -1) {
		entries = append(entries, heading[1])
	}
	if !slices.Equal(alerts, entries) {
		t.Errorf("alerts %v\nentries %v", alerts, entries)
	}
}
