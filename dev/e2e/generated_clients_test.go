package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"modelrelay/dev/e2e/stack"
)

// operationsFile is what the generated clients do: every operation of the document, once.
const operationsFile = "testdata/operations.json"

// TestGeneratedClients makes a Go and a TypeScript client from the OpenAPI document, compiles both, and drives every
// operation with each: what the document says is what a program that trusts it meets.
func TestGeneratedClients(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	node := installedNode(t)
	g := newFormats(t)
	document := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(document, openAPI(t), 0o600); err != nil {
		t.Fatal(err)
	}
	plan, err := filepath.Abs(operationsFile)
	if err != nil {
		t.Fatal(err)
	}
	command := func(t *testing.T, dir, name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GATEWAY_URL="+g.URL(), "GATEWAY_TOKEN="+stack.Token, "GATEWAY_ADMIN_KEY="+stack.AdminKey)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	driven := func(out string) int { return strings.Count("\n"+out, "\nok ") }
	steps := len(readOperations(t, plan))

	t.Run("go", func(t *testing.T) {
		dir := t.TempDir()
		for _, name := range []string{"go.mod", "go.sum", "drive.go"} {
			content, err := os.ReadFile("testdata/goclient/" + name)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		command(t, dir, "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "main", "-o", "client.gen.go", document)
		if got := driven(command(t, dir, "go", "run", ".", plan)); got != steps {
			t.Errorf("%d operations were driven, want %d", got, steps)
		}
	})
	t.Run("typescript", func(t *testing.T) {
		// Next to node_modules, where the compiler and the generated code find what they import.
		dir, err := os.MkdirTemp(nodeDir, "generated-") //nolint:usetesting // not in the folder of tests
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		name := filepath.Base(dir)
		command(t, nodeDir, node, "generate-client.js", document, name)
		command(t, nodeDir, node, "node_modules/typescript/bin/tsc", "--outDir", name+"/js", "--strict", "--skipLibCheck", "--target", "es2022",
			"--lib", "es2022,dom,dom.iterable", "--module", "nodenext", "--moduleResolution", "nodenext", name+"/index.ts")
		if got := driven(command(t, nodeDir, node, "drive-client.js", name+"/js", plan)); got != steps {
			t.Errorf("%d operations were driven, want %d", got, steps)
		}
	})
}

// readOperations lists the operations of the plan.
func readOperations(t *testing.T, plan string) []string {
	t.Helper()
	text, err := os.ReadFile(plan)
	if err != nil {
		t.Fatal(err)
	}
	var steps []struct {
		Operation string `json:"operation"`
	}
	if err := json.Unmarshal(text, &steps); err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(steps))
	for i, step := range steps {
		names[i] = step.Operation
	}
	return names
}

// openAPI returns the gateway's document.
func openAPI(t *testing.T) []byte {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), stack.Bin.Gateway, "openapi", "--format", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestGeneratedClientsPlan checks that the plan names every operation of the document.
func TestGeneratedClientsPlan(t *testing.T) {
	t.Parallel()
	var paths struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(openAPI(t), &paths); err != nil {
		t.Fatal(err)
	}
	planned := readOperations(t, operationsFile)
	for path, methods := range paths.Paths {
		for method, operation := range methods {
			if !slices.Contains(planned, operation.OperationID) {
				t.Errorf("%s lacks %s, which is %s %s", operationsFile, operation.OperationID, method, path)
			}
		}
	}
}
