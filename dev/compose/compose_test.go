// Package compose_test compares the compose files with the embedded stack: a gateway finds the same on either.
package compose_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"modelrelay/dev/settings"
)

// root is the folder of docker-compose.yml, seen from this package.
const root = "../.."

type composeFile struct {
	Services map[string]service
	Volumes  map[string]any
}

type service struct {
	Image      string
	Build      *struct{ Context, Dockerfile, Target string }
	PullPolicy string `yaml:"pull_policy"`
	Restart    string
	Command    []string
	Ports      []string
	Volumes    []string

	ReadOnly    bool `yaml:"read_only"`
	Tmpfs       []string
	SecurityOpt []string `yaml:"security_opt"`
	Logging     struct{ Options map[string]string }

	Environment map[string]string
	Healthcheck *struct{ Test []string }
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
}

func compose(t *testing.T) composeFile {
	t.Helper()
	var c composeFile
	read(t, filepath.Join(root, "docker-compose.yml"), &c)
	for name := range c.Services {
		if c.Services[name].Image == "" {
			t.Fatalf("service %s has no image: the file was not understood", name)
		}
	}
	return c
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	// To this library a key after << that replaces a merged one is there twice.
	if err := yaml.Unmarshal([]byte(text(t, file)), into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func text(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestServices(t *testing.T) {
	t.Parallel()
	got := slices.Sorted(maps.Keys(compose(t).Services))
	want := []string{
		"bucket", "gateway", "grafana", "jaeger", "minio", "postgres", "prometheus", "redis", "temporal", "temporal-namespace", "temporal-schema",
		"temporal-ui", "upstream", "worker",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestImages holds that every image is pinned or built here, and that Temporal is the one the embedded stack links.
func TestImages(t *testing.T) {
	t.Parallel()
	dockerfile := text(t, "Dockerfile")
	pinned := regexp.MustCompile(`^[a-z/-]+:v?\d+\.\d+(\.\d+)?[\w.-]*$`)
	for name, s := range compose(t).Services {
		if strings.HasPrefix(s.Image, "modelrelay-") {
			continue
		}
		if !pinned.MatchString(s.Image) {
			t.Errorf("%s: image %s is not pinned", name, s.Image)
		}
	}
	// Only one service builds a tag: engines without a recent BuildKit fail when two do so at once. The others wait for it.
	builders := map[string]int{}
	for name, s := range compose(t).Services {
		switch {
		case s.Build != nil:
			builders[s.Image]++
			if s.Build.Context != "." || s.Build.Dockerfile != "dev/compose/Dockerfile" ||
				!strings.Contains(dockerfile, " AS "+s.Build.Target+"\n") {
				t.Errorf("%s: builds %+v, want a target of dev/compose/Dockerfile", name, *s.Build)
			}
		case strings.HasPrefix(s.Image, "modelrelay-"):
			builders[s.Image] += 0
			if s.PullPolicy != "never" {
				t.Errorf("%s: pulls %s, which no registry has", name, s.Image)
			}
		}
	}
	for image, n := range builders {
		if n != 1 {
			t.Errorf("%d services build %s, want 1", n, image)
		}
	}

	module := text(t, "../go.mod")
	for image, path := range map[string]string{
		"temporalio/server": "go.temporal.io/server", "temporalio/admin-tools": "go.temporal.io/server",
		"temporalio/ui": "github.com/temporalio/ui-server/v2",
	} {
		version := regexp.MustCompile(`(?m)^\s+` + regexp.QuoteMeta(path) + ` v(\S+)`).FindStringSubmatch(module)
		if version == nil {
			t.Fatalf("%s is not in go.mod", path)
		}
		if want := image + ":" + version[1]; !strings.Contains(text(t, filepath.Join(root, "docker-compose.yml")), "image: "+want+"\n") {
			t.Errorf("no service runs %s, which the embedded stack links", want)
		}
	}
	for _, file := range []string{"../go.mod", filepath.Join(root, "go.mod")} {
		goVersion := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(text(t, file))
		image := regexp.MustCompile(`ARG GO_IMAGE=golang:(\d+\.\d+\.\d+)-`).FindStringSubmatch(dockerfile)
		if goVersion == nil || image == nil || !atLeast(image[1], goVersion[1]) {
			t.Errorf("%s wants Go %v, the Dockerfile has %v", file, goVersion, image)
		}
	}
	// Images of registries are named by the arguments at the top alone.
	names := map[string]bool{"scratch": true}
	for _, arg := range regexp.MustCompile(`(?m)^ARG (\w+_IMAGE)=(\S+)$`).FindAllStringSubmatch(dockerfile, -1) {
		names["${"+arg[1]+"}"] = true
		if !pinned.MatchString(arg[2]) {
			t.Errorf("the Dockerfile's %s is not pinned", arg[2])
		}
	}
	for _, from := range regexp.MustCompile(`(?m)^FROM (.*)$`).FindAllStringSubmatch(dockerfile, -1) {
		image, stage, named := strings.Cut(from[1], " AS ")
		if !named || !names[image] {
			t.Errorf("FROM %s: wants a name, and a stage or an argument to begin with", from[1])
		}
		names[stage] = true
	}
	if !strings.Contains(dockerfile, "ARG MINIO_VERSION="+settings.MinIOVersion+"\n") {
		t.Errorf("the Dockerfile builds another MinIO than the stack, %s", settings.MinIOVersion)
	}
	if !strings.Contains(dockerfile, "USER nonroot") || !strings.Contains(dockerfile, "CGO_ENABLED=0") {
		t.Error("the images are not static or run as root")
	}
}

// TestGatewayImage holds that the gateway's image is its binary alone and does not run as root, that its health checks need
// nothing else, and that it carries the version of the source.
func TestGatewayImage(t *testing.T) {
	t.Parallel()
	_, stage, found := strings.Cut(text(t, "Dockerfile"), "\nFROM scratch AS gateway\n")
	stage, _, ended := strings.Cut(stage, "\nFROM ")
	if !found || !ended {
		t.Fatal("the gateway's image is not made from nothing")
	}
	for _, line := range []string{
		"USER 65532:65532\n", `CMD ["gateway", "health"]`, `ENTRYPOINT ["gateway"]`, "/usr/share/sbom/",
		`image.version="${VERSION}"`, `image.revision="${COMMIT}"`, `image.source="${SOURCE}"`, `image.licenses="Apache-2.0"`,
	} {
		if !strings.Contains(stage, line) {
			t.Errorf("the gateway's image lacks %q", line)
		}
	}
	version := regexp.MustCompile(`(?m)^\tversion += "(\d+\.\d+\.\d+)"`).FindStringSubmatch(text(t,
		filepath.Join(root, "cmd/gateway/internal/buildinfo/buildinfo.go")))
	if version == nil || !strings.Contains(text(t, "Dockerfile"), "\nARG VERSION="+version[1]+"\n") {
		t.Errorf("the Dockerfile's VERSION is not the source's, %v", version)
	}
	if strings.Contains(stage, "RUN ") {
		t.Error("the gateway's image runs a program of its own, but has none")
	}
	for _, name := range []string{"gateway", "worker"} {
		if check := compose(t).Services[name].Healthcheck; check != nil &&
			(len(check.Test) < 2 || check.Test[0] != "CMD" || check.Test[1] != "gateway") {
			t.Errorf("%s: its health check %v runs what the image does not have", name, check.Test)
		}
	}
}

// atLeast compares two versions of three numbers below 1000.
func atLeast(have, want string) bool {
	pad := func(version string) string {
		var b strings.Builder
		for part := range strings.SplitSeq(version, ".") {
			b.WriteString(strings.Repeat("0", 3-len(part)) + part + ".")
		}
		return b.String()
	}
	return pad(have) >= pad(want)
}

// Where Prometheus, Grafana and Jaeger are; the embedded stack has none of them.
const (
	jaegerAddress     = "127.0.0.1:16686"
	prometheusAddress = "127.0.0.1:9090"
	grafanaAddress    = "127.0.0.1:3000"
)

// TestPorts holds that pages and the API are published where the embedded stack has them, and what only containers use is not.
func TestPorts(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"temporal-ui": settings.UIAddress, "gateway": settings.GatewayAddress,
		"prometheus": prometheusAddress, "grafana": grafanaAddress, "jaeger": jaegerAddress,
	}
	for name, s := range compose(t).Services {
		switch {
		case want[name] == "" && len(s.Ports) == 0:
		case want[name] == "", len(s.Ports) != 1, !strings.HasPrefix(s.Ports[0], want[name]+":"):
			t.Errorf("%s: publishes %v, want %q", name, s.Ports, want[name])
		}
	}
}

// TestConfined holds that every container has a bound for its log, gains no privileges and cannot write to its image.
func TestConfined(t *testing.T) {
	t.Parallel()
	for name, s := range compose(t).Services {
		if s.Logging.Options["max-size"] == "" || s.Logging.Options["max-file"] == "" {
			t.Errorf("%s: its log has no limit", name)
		}
		if !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s: may gain privileges", name)
		}
		if !s.ReadOnly || !slices.Contains(s.Tmpfs, "/tmp") {
			t.Errorf("%s: read-only %v, tmpfs %v", name, s.ReadOnly, s.Tmpfs)
		}
	}
}

// TestDatabaseIsReady: PostgreSQL answers on its socket during the first initialisation and restarts after it.
func TestDatabaseIsReady(t *testing.T) {
	t.Parallel()
	if check := strings.Join(compose(t).Services["postgres"].Healthcheck.Test, " "); !strings.Contains(check, "pg_isready -h 127.0.0.1") {
		t.Errorf("got %q, want a check over TCP", check)
	}
}

func TestTemporalAgrees(t *testing.T) {
	t.Parallel()
	namespace := compose(t).Services["temporal-namespace"].Environment
	if got := namespace["NAMESPACE"]; got != settings.Namespace {
		t.Errorf("namespace: got %q, want %q", got, settings.Namespace)
	}
	if got, err := time.ParseDuration(namespace["RETENTION"]); err != nil || got != settings.Retention {
		t.Errorf("retention: got %v, %v, want %v", got, err, settings.Retention)
	}
	if got := strings.Fields(namespace["SEARCH_ATTRIBUTES"]); !slices.Equal(got, settings.SearchAttributes()) {
		t.Errorf("search attributes: got %v, want %v", got, settings.SearchAttributes())
	}
	for _, name := range []string{"temporal-namespace", "temporal-ui"} {
		if got, want := compose(t).Services[name].Environment["TEMPORAL_ADDRESS"], "temporal:"+port(settings.TemporalAddress); got != want {
			t.Errorf("%s: TEMPORAL_ADDRESS: got %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{"NAMESPACE", "RETENTION", "SEARCH_ATTRIBUTES"} {
		if !strings.Contains(text(t, "temporal-namespace.sh"), "$"+name) {
			t.Errorf("temporal-namespace.sh does not use %s", name)
		}
	}

	var file map[string][]struct{ Value any }
	read(t, "temporal-dynamic.yaml", &file)
	got := map[string]any{}
	for key, values := range file {
		if len(values) != 1 {
			t.Errorf("%s: got %d values, want 1", key, len(values))
			continue
		}
		got[key] = values[0].Value
		if n, ok := values[0].Value.(uint64); ok {
			got[key] = int(n)
		}
	}
	if want := settings.DynamicConfig(); !maps.Equal(got, want) {
		t.Errorf("dynamic configuration: got %v, want %v", got, want)
	}
}

func TestArchiveAgrees(t *testing.T) {
	t.Parallel()
	services := compose(t).Services
	if got := services["bucket"].Command; got[len(got)-1] != "store/"+settings.Bucket {
		t.Errorf("bucket: got %v, want %s", got, settings.Bucket)
	}
	for env, want := range map[string]string{
		"MINIO_ROOT_USER":     "${MINIO_ROOT_USER:-" + settings.AccessKey + "}",
		"MINIO_ROOT_PASSWORD": "${MINIO_ROOT_PASSWORD:-" + settings.SecretKey + "}",
	} {
		if got := services["minio"].Environment[env]; got != want {
			t.Errorf("%s: got %q, want %q", env, got, want)
		}
		gateway := map[string]string{"MINIO_ROOT_USER": "ARCHIVE_ACCESS_KEY", "MINIO_ROOT_PASSWORD": "ARCHIVE_SECRET_KEY"}[env]
		if got := services["gateway"].Environment[gateway]; got != want {
			t.Errorf("%s: got %q, want %q", gateway, got, want)
		}
	}
}

// TestGatewayConfig holds that the file names the services by their names and ports, agrees with the embedded stack,
// and takes from the environment only what compose passes on.
func TestGatewayConfig(t *testing.T) {
	t.Parallel()
	var got struct {
		Redis    struct{ URL string }
		Temporal struct {
			Address, Namespace string
			TaskQueue          string `yaml:"task_queue"`
		}
		Archive  struct{ Endpoint, Bucket, Region string }
		Channels []struct {
			BaseURL string `yaml:"base_url"`
		}
	}
	read(t, "gateway/gateway.yaml", &got)
	if got.Temporal.Namespace != settings.Namespace || got.Temporal.TaskQueue != settings.TaskQueue ||
		got.Archive.Bucket != settings.Bucket || got.Archive.Region != settings.Region {
		t.Errorf("got %+v, want what the embedded stack has", got)
	}
	for what, pair := range map[string][2]string{
		"redis":    {got.Redis.URL, "redis://redis:" + port(settings.RedisAddress) + "/0"},
		"temporal": {got.Temporal.Address, "temporal:" + port(settings.TemporalAddress)},
		"archive":  {got.Archive.Endpoint, "http://minio:" + port(settings.StoreAddress)},
		"channel":  {got.Channels[0].BaseURL, "http://upstream:" + port(settings.UpstreamAddress) + "/openai/v1"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %s, want %s", what, pair[0], pair[1])
		}
	}
	services := compose(t).Services
	for _, name := range []string{"gateway", "worker"} {
		for _, variable := range regexp.MustCompile(`\$\{(\w+)\}`).FindAllStringSubmatch(text(t, "gateway/gateway.yaml"), -1) {
			if services[name].Environment[variable[1]] == "" {
				t.Errorf("%s: %s is not passed on", name, variable[1])
			}
		}
	}
}

// TestGatewayAcceptsConfig asks the gateway itself, whose reader knows every key.
func TestGatewayAcceptsConfig(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("compiles the gateway: left out with -short")
	}
	file, err := filepath.Abs("gateway/gateway.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "./cmd/gateway", "config", "check", "--config", file)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOWORK=off", "ADMIN_KEY=an-operators-key-of-a-test", "DEMO_TOKEN=sk-demo", "ARCHIVE_ACCESS_KEY=a",
		"ARCHIVE_SECRET_KEY=b")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("config check: got %v\n%s\nwant no complaint", err, out)
	}
}

func port(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

// TestOrder holds that a service that waits for another has a check for it.
func TestOrder(t *testing.T) {
	t.Parallel()
	services := compose(t).Services
	for name, s := range services {
		for other, on := range s.DependsOn {
			needed, ok := services[other]
			switch {
			case !ok:
				t.Errorf("%s waits for %s, which does not exist", name, other)
			case on.Condition == "service_healthy" && needed.Healthcheck == nil:
				t.Errorf("%s waits for the health of %s, which has no check", name, other)
			case on.Condition == "service_completed_successfully" && !strings.HasPrefix(needed.Restart, "on-failure"):
				t.Errorf("%s waits for the end of %s, which restarts", name, other)
			case on.Condition == "service_started", on.Condition == "":
				t.Errorf("%s does not wait until %s is ready", name, other)
			}
			if waitsFor(services, other, name, nil) {
				t.Errorf("%s and %s wait for each other", name, other)
			}
		}
	}
	for _, name := range []string{"gateway", "worker"} {
		for _, other := range []string{"postgres", "temporal", "temporal-namespace", "minio", "bucket", "redis"} {
			if !waitsFor(services, name, other, nil) {
				t.Errorf("%s does not wait for %s", name, other)
			}
		}
	}
}

func waitsFor(services map[string]service, name, other string, seen []string) bool {
	if slices.Contains(seen, name) {
		return false
	}
	for needed := range services[name].DependsOn {
		if needed == other || waitsFor(services, needed, other, append(seen, name)) {
			return true
		}
	}
	return false
}

func TestVolumes(t *testing.T) {
	t.Parallel()
	c := compose(t)
	used := map[string]bool{}
	for name, s := range c.Services {
		for _, volume := range s.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if !strings.HasPrefix(source, "./") {
				used[source] = true
				if _, ok := c.Volumes[source]; !ok {
					t.Errorf("%s: volume %s is not declared", name, source)
				}
				continue
			}
			if _, err := os.Stat(filepath.Join(root, source)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if !strings.HasSuffix(volume, ":ro") {
				t.Errorf("%s: %s is writable", name, volume)
			}
		}
	}
	for name := range c.Volumes {
		if !used[name] {
			t.Errorf("volume %s is unused", name)
		}
	}
}

func TestScriptsParse(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("*.sh")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, script := range scripts {
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", script, err, out)
		}
	}
}
