// Package helm_test renders the chart as Helm does and reads what comes out as Kubernetes and the gateway do.
package helm_test

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	chart     = "modelrelay"
	namespace = "ai"
	secrets   = "/etc/gateway-secrets/"
)

// objects are what a chart renders to, each decoded strictly into the type that Kubernetes has for it.
type objects struct {
	deployments map[string]apps.Deployment // by component
	config      string                     // the gateway's configuration file
	kinds       map[string]int
	policies    []networking.NetworkPolicy
	services    map[string]core.Service
	accounts    map[string]core.ServiceAccount
	job         batch.Job
	monitor     monitoring.ServiceMonitor
	rules       monitoring.PrometheusRule
}

func values(t *testing.T, file string) map[string]any {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := yaml.UnmarshalStrict(content, &v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return v
}

// examples are the value files, by name.
func examples(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("values/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no value files: %v", err)
	}
	found := map[string]string{}
	for _, file := range files {
		found[strings.TrimSuffix(filepath.Base(file), ".yaml")] = file
	}
	return found
}

// render makes the chart's text by file, as helm template does.
func render(t *testing.T, given map[string]any) (map[string]string, error) {
	t.Helper()
	c, err := loader.Load(chart)
	if err != nil {
		t.Fatal(err)
	}
	release := common.ReleaseOptions{Name: "relay", Namespace: namespace, Revision: 1, IsInstall: true}
	v, err := util.ToRenderValues(c, given, release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	var e engine.Engine
	e.Strict = true
	return e.RenderWithContext(t.Context(), c, v)
}

// decode reads every object strictly.
func decode(t *testing.T, files map[string]string) objects {
	t.Helper()
	got := objects{
		deployments: map[string]apps.Deployment{}, kinds: map[string]int{}, services: map[string]core.Service{},
		accounts: map[string]core.ServiceAccount{},
	}
	for name, text := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var head struct{ Kind, APIVersion string }
			if err := yaml.Unmarshal(document, &head); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, document)
			}
			if head.Kind == "" {
				continue // nothing but comments
			}
			got.kinds[head.Kind]++
			one(t, name, head.APIVersion+" "+head.Kind, document, &got)
		}
	}
	return got
}

func one(t *testing.T, file, kind string, document []byte, got *objects) {
	t.Helper()
	read := func(into any) {
		if err := yaml.UnmarshalStrict(document, into); err != nil {
			t.Errorf("%s: %s: %v\n%s", file, kind, err, document)
		}
	}
	switch kind {
	case "apps/v1 Deployment":
		var d apps.Deployment
		read(&d)
		got.deployments[d.Labels["app.kubernetes.io/component"]] = d
	case "v1 ConfigMap":
		var c core.ConfigMap
		read(&c)
		if got.config != "" && got.config != c.Data["gateway.yaml"] {
			t.Errorf("%s: another configuration than that of the deployments", file)
		}
		got.config = c.Data["gateway.yaml"]
	case "v1 Service":
		var s core.Service
		read(&s)
		got.services[s.Name] = s
	case "networking.k8s.io/v1 NetworkPolicy":
		var p networking.NetworkPolicy
		read(&p)
		got.policies = append(got.policies, p)
	case "v1 ServiceAccount":
		var a core.ServiceAccount
		read(&a)
		got.accounts[a.Name] = a
	case "batch/v1 Job":
		read(&got.job)
	case "networking.k8s.io/v1 Ingress":
		read(new(networking.Ingress))
	case "autoscaling/v2 HorizontalPodAutoscaler":
		read(new(autoscaling.HorizontalPodAutoscaler))
	case "policy/v1 PodDisruptionBudget":
		read(new(policy.PodDisruptionBudget))
	case "monitoring.coreos.com/v1 ServiceMonitor":
		read(&got.monitor)
	case "monitoring.coreos.com/v1 PrometheusRule":
		read(&got.rules)
	default:
		t.Errorf("%s: a %s, which the chart has no reason to make", file, kind)
	}
}

// TestLint holds every example to helm lint.
func TestLint(t *testing.T) {
	t.Parallel()
	for name, file := range examples(t) {
		for _, message := range lint.RunAll(chart, values(t, file), namespace).Messages {
			if message.Severity > 1 { // information, such as an icon that is not there, is none of ours
				t.Errorf("%s: %v", name, message)
			}
		}
	}
}

// TestObjects holds every example's objects to the types of Kubernetes, and their pods to what a strict cluster admits.
func TestObjects(t *testing.T) {
	t.Parallel()
	for name, file := range examples(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, err := render(t, values(t, file))
			if err != nil {
				t.Fatal(err)
			}
			got := decode(t, files)
			if parts := slices.Sorted(maps.Keys(got.deployments)); !slices.Equal(parts, []string{"api", "worker"}) {
				t.Fatalf("deployments: %v", parts)
			}
			for part, d := range got.deployments {
				if !maps.Equal(d.Spec.Selector.MatchLabels, subset(d.Spec.Template.Labels, d.Spec.Selector.MatchLabels)) {
					t.Errorf("%s: the deployment does not choose its own pods", part)
				}
				admitted(t, part, d.Spec.Template.Spec)
			}
			preflight(t, got)
			for name, s := range got.services {
				for _, port := range s.Spec.Ports {
					if !slices.ContainsFunc(got.deployments["api"].Spec.Template.Spec.Containers[0].Ports,
						func(p core.ContainerPort) bool { return p.Name == port.TargetPort.StrVal }) {
						t.Errorf("service %s: no port %s in the pod", name, port.TargetPort.StrVal)
					}
				}
			}
			for _, p := range got.policies {
				if len(p.Spec.PolicyTypes) != 2 {
					t.Errorf("network policy %s: %v", p.Name, p.Spec.PolicyTypes)
				}
			}
		})
	}
}

// admitted holds a pod to the restricted profile of Kubernetes' pod security standards, and to the gateway's own needs.
func admitted(t *testing.T, part string, pod core.PodSpec) {
	t.Helper()
	c := pod.Containers[0]
	switch s, p := c.SecurityContext, pod.SecurityContext; {
	case !*p.RunAsNonRoot, *p.RunAsUser == 0, p.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault,
		*s.AllowPrivilegeEscalation, !*s.ReadOnlyRootFilesystem, !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}):
		t.Errorf("%s: not restricted: %+v %+v", part, p, s)
	}
	if *pod.AutomountServiceAccountToken {
		t.Errorf("%s: has a token of Kubernetes", part)
	}
	if part != "preflight" && (c.LivenessProbe == nil || c.StartupProbe == nil || part == "api" && c.ReadinessProbe == nil) {
		t.Errorf("%s: lacks a probe", part)
	}
	if part == "api" && *pod.TerminationGracePeriodSeconds <= c.Lifecycle.PreStop.Sleep.Seconds+90 {
		t.Errorf("%s: ends after %d s, %d of them before SIGTERM", part, *pod.TerminationGracePeriodSeconds, c.Lifecycle.PreStop.Sleep.Seconds)
	}
	if c.Resources.Limits.Memory().IsZero() {
		t.Errorf("%s: no limit of memory, by which the gateway bounds request bodies", part)
	}
	mounted := map[string]bool{}
	for _, v := range pod.Volumes {
		mounted[v.Name] = true
	}
	for _, m := range c.VolumeMounts {
		if !mounted[m.Name] {
			t.Errorf("%s: mounts %s, which is no volume", part, m.Name)
		}
	}
}

// preflight holds the job that runs before pods are replaced: it checks what the deployments would use, and needs only objects
// that exist before the release's.
func preflight(t *testing.T, got objects) {
	t.Helper()
	pod, worker := got.job.Spec.Template.Spec, got.deployments["worker"].Spec.Template.Spec
	admitted(t, "preflight", pod)
	c := pod.Containers[0]
	if !slices.Equal(c.Args, []string{"config", "check", "--connect"}) || got.job.Annotations["helm.sh/hook"] != "pre-install,pre-upgrade" {
		t.Errorf("the job runs %v at %q", c.Args, got.job.Annotations["helm.sh/hook"])
	}
	if pod.RestartPolicy != core.RestartPolicyNever || got.job.Spec.ActiveDeadlineSeconds == nil {
		t.Errorf("the job has no end: %+v", got.job.Spec)
	}
	if c.Image != worker.Containers[0].Image || len(c.Env) != len(worker.Containers[0].Env) ||
		len(c.VolumeMounts) != len(worker.Containers[0].VolumeMounts) {
		t.Errorf("the job is not of the worker's kind: %+v", c)
	}
	account, ok := got.accounts[pod.ServiceAccountName]
	if annotations := got.accounts[worker.ServiceAccountName].Annotations; !ok ||
		!maps.Equal(subset(account.Annotations, annotations), annotations) {
		t.Errorf("the job's service account %q: %+v", pod.ServiceAccountName, account.Annotations)
	}
	if name := pod.Volumes[0].ConfigMap.Name; account.Annotations["helm.sh/hook"] == "" || !strings.HasSuffix(name, "-preflight") {
		t.Errorf("the job waits for objects of the release: account %v, configuration %s", account.Annotations, name)
	}
}

func subset(of, keys map[string]string) map[string]string {
	found := map[string]string{}
	for key := range keys {
		found[key] = of[key]
	}
	return found
}

// gateway is the program itself, built once.
var gateway = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gateway")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "gateway")
	cmd := exec.Command("go", "build", "-o", binary, "./cmd/gateway")
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return binary, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if binary, err := gateway(); err == nil {
		_ = os.RemoveAll(filepath.Dir(binary))
	}
	os.Exit(code)
}

// TestConfig gives every example's configuration to the gateway, with each secret that it names, and no other.
func TestConfig(t *testing.T) {
	t.Parallel()
	binary, err := gateway()
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range examples(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := values(t, file)
			files, err := render(t, given)
			if err != nil {
				t.Fatal(err)
			}
			got := decode(t, files)
			dir := t.TempDir()
			folders := map[string]bool{}
			for _, mount := range got.deployments["worker"].Spec.Template.Spec.Containers[0].VolumeMounts {
				folders[mount.MountPath] = true
			}
			for _, named := range regexp.MustCompile(secrets+`([\w.-]+)/([\w.-]+)`).FindAllStringSubmatch(got.config, -1) {
				if !folders[secrets+named[1]] {
					t.Errorf("the configuration reads %s, which is not mounted", named[0])
				}
				secretFile(t, filepath.Join(dir, named[1]), named[2])
			}
			config := filepath.Join(dir, "gateway.yaml")
			if err := os.WriteFile(config, []byte(strings.ReplaceAll(got.config, secrets, dir+"/")), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), binary, "config", "check", "--config", config)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
			for _, variable := range got.deployments["api"].Spec.Template.Spec.Containers[0].Env {
				cmd.Env = append(cmd.Env, variable.Name+"=a-secret-of-24-characters-"+strings.ToLower(variable.Name))
			}
			// 1: the file is valid, but the files that it names are not here.
			out, err := cmd.CombinedOutput()
			if err != nil && cmd.ProcessState.ExitCode() != 1 || !bytes.Contains(out, []byte("is valid")) {
				t.Errorf("config check: %v\n%s\n%s", err, out, got.config)
			}
			for line := range strings.Lines(string(out)) {
				if warning, ok := strings.CutPrefix(line, "warning   "); ok && !strings.HasPrefix(warning, "prices.") {
					t.Errorf("config check warns of an example: %s", warning)
				}
			}
		})
	}
}

// secretFile writes what a secret's key would hold: a certificate, its key, a key of payloads, or a word.
func secretFile(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	content := []byte("a-secret-of-24-characters-" + name)
	if strings.HasPrefix(name, "payload") {
		content = []byte(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	}
	if strings.HasSuffix(name, ".crt") || strings.HasSuffix(name, ".key") {
		certificate, key := pair(t)
		for file, text := range map[string][]byte{"tls.crt": certificate, "ca.crt": certificate, "tls.key": key} {
			if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func pair(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(1, 0, 0), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// TestRefusals: what cannot work is refused before anything is installed, by the name of its value.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, says string
		given      string
	}{
		{"no image", "image.repository", `{}`},
		{"unknown value", "replicaCount", `{image: {repository: r}, replicaCount: 2}`},
		{"the chart's own address", "listen", `{image: {repository: r}, config: {listen: "127.0.0.1:80"}}`},
		{"a secret's text", "env", `{image: {repository: r}, env: [{name: KEY, secret: a, key: b, value: sk-plain}]}`},
		{
			"a grace shorter than a submit", "terminationGracePeriodSeconds",
			`{image: {repository: r}, worker: {terminationGracePeriodSeconds: 30}}`,
		},
		{"ingress without a host", "ingress.hosts", `{image: {repository: r}, ingress: {enabled: true}}`},
	} {
		var given map[string]any
		if err := yaml.Unmarshal([]byte(test.given), &given); err != nil {
			t.Fatal(err)
		}
		if _, err := render(t, given); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want an error that names %s", test.name, err, test.says)
		}
	}
}

// TestProbes: where connections must begin with the PROXY protocol's header, the kubelet's own would be closed.
func TestProbes(t *testing.T) {
	t.Parallel()
	for config, inside := range map[string]bool{"{}": false, "{proxy_protocol: true, trusted_proxies: [10.0.0.0/8]}": true} {
		var given map[string]any
		if err := yaml.Unmarshal([]byte("image: {repository: r}\nconfig: "+config), &given); err != nil {
			t.Fatal(err)
		}
		files, err := render(t, given)
		if err != nil {
			t.Fatal(err)
		}
		c := decode(t, files).deployments["api"].Spec.Template.Spec.Containers[0]
		if got := c.ReadinessProbe.Exec != nil; got != inside || c.LivenessProbe == nil {
			t.Errorf("%s: readiness is asked from inside: %v, want %v", config, got, inside)
		}
	}
}

// TestFront: a balancer that passes connections on leads its HTTPS port to TLS, and introduces clients as the gateway expects.
func TestFront(t *testing.T) {
	t.Parallel()
	const introduces = "service.beta.kubernetes.io/aws-load-balancer-proxy-protocol"
	balancers := 0
	for name, file := range examples(t) {
		files, err := render(t, values(t, file))
		if err != nil {
			t.Fatal(err)
		}
		got := decode(t, files)
		var config struct {
			TLS           map[string]string `json:"tls"`
			ProxyProtocol bool              `json:"proxy_protocol"`
		}
		if err := yaml.Unmarshal([]byte(got.config), &config); err != nil {
			t.Fatal(err)
		}
		for _, s := range got.services {
			if s.Spec.Type != core.ServiceTypeLoadBalancer {
				continue
			}
			balancers++
			if port := s.Spec.Ports[0]; (port.Port == 443) != (len(config.TLS) > 0) {
				t.Errorf("%s: port %d leads to a listener with tls %v", name, port.Port, config.TLS)
			}
			if (s.Annotations[introduces] != "") != config.ProxyProtocol {
				t.Errorf("%s: proxy_protocol is %v, the balancer has %q", name, config.ProxyProtocol, s.Annotations[introduces])
			}
		}
	}
	if balancers == 0 {
		t.Error("no example has a balancer")
	}
}

// TestWatch: series have the label that the alerts select, and the chart installs these alerts.
func TestWatch(t *testing.T) {
	t.Parallel()
	files, err := render(t, values(t, "values/full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	got := decode(t, files)
	if r := got.monitor.Spec.Endpoints[0].RelabelConfigs; len(r) != 1 || r[0].TargetLabel != "app" || *r[0].Replacement != "modelrelay" {
		t.Errorf("the ServiceMonitor sets %+v", r)
	}
	var alerts monitoring.PrometheusRuleSpec
	text, err := os.ReadFile(chart + "/files/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &alerts); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.rules.Spec, alerts) || len(alerts.Groups) == 0 ||
		alerts.Groups[0].Rules[0].Expr.String() != `up{app="modelrelay"} == 0` {
		t.Errorf("the PrometheusRule has %+v", got.rules.Spec)
	}
}

// TestVersion holds the chart to the version of the source.
func TestVersion(t *testing.T) {
	t.Parallel()
	c, err := loader.Load(chart)
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../../cmd/gateway/internal/buildinfo/buildinfo.go")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^\tversion += "(\S+)"`).FindSubmatch(source)
	if got := c.Metadata.AppVersion; version == nil || got != string(version[1]) {
		t.Errorf("the chart's appVersion is %s, the source's version %s", got, version)
	}
}

// live lists the paths of the keys that a reload applies, as the gateway's configuration marks them.
func live(t *testing.T) (paths [][]string) {
	t.Helper()
	files, err := filepath.Glob("../../cmd/gateway/internal/config/*.go")
	if err != nil {
		t.Fatal(err)
	}
	structs := map[string]*ast.StructType{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					structs[spec.Name.Name] = s
				}
			}
			return true
		})
	}
	var list func(of *ast.StructType, under []string)
	list = func(of *ast.StructType, under []string) {
		for _, field := range of.Fields.List {
			tag := reflect.StructTag("")
			if field.Tag != nil {
				tag = reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
			}
			path := under
			if key := tag.Get("yaml"); key != "" {
				path = append(slices.Clone(under), key)
			}
			name, _ := field.Type.(*ast.Ident)
			switch {
			case tag.Get("live") == "true":
				paths = append(paths, path)
			case name != nil && structs[name.Name] != nil:
				list(structs[name.Name], path)
			}
		}
	}
	list(structs["Config"], nil)
	if len(paths) < 9 {
		t.Fatalf("live keys: %v: the source was not understood", paths)
	}
	return paths
}

// TestRestart: pods are replaced for a key that needs it, and not for what the process reads again by itself.
func TestRestart(t *testing.T) {
	t.Parallel()
	note := func(config map[string]any) string {
		files, err := render(t, map[string]any{"image": map[string]any{"repository": "r"}, "config": config})
		if err != nil {
			t.Fatal(err)
		}
		return decode(t, files).deployments["api"].Spec.Template.Annotations["modelrelay/config"]
	}
	with := func(path []string, value any) map[string]any {
		config := map[string]any{"temporal": map[string]any{"api_key": "first"}}
		section := config
		for _, key := range path[:len(path)-1] {
			section, _ = section[key].(map[string]any)
		}
		section[path[len(path)-1]] = value
		return config
	}
	for _, path := range live(t) {
		if note(with(path, "one")) != note(with(path, "another")) {
			t.Errorf("%v restarts every pod, though the gateway reads it again", path)
		}
	}
	for _, config := range []string{
		`{redis: {url: "redis://other:6379/0"}}`, `{temporal: {address: "other:7233"}}`, `{temporal: {api_key: a-first-one}}`, `{currency: EUR}`,
		`{relay: {grace: 5s}}`,
	} {
		var changed map[string]any
		if err := yaml.Unmarshal([]byte(config), &changed); err != nil {
			t.Fatal(err)
		}
		if note(map[string]any{}) == note(changed) {
			t.Errorf("%s restarts no pod", config)
		}
	}
}
