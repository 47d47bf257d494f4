package api_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v4"
)

// contractOperation is one operation as testdata/contract.yaml describes it.
type contractOperation struct {
	Method, Path string
	// Parameters are those of path, query and header.
	Parameters []string
	Form       bool
	Fields     []contractField
}

// contractField is one field of a body. Members of objects follow a dot, those of array items "[]".
type contractField struct {
	Name      string
	Types     []string // string, integer, number, boolean, object, binary, and array of any of them as in "string[]"
	Enum      []string // of strings, or of the strings of an array
	Required  bool
	Described bool
}

// readContract reads the operations that the gateway has to serve.
func readContract(t *testing.T) []contractOperation {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "contract.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all []contractOperation
	if err := yaml.Load(text, &all, yaml.WithKnownFields()); err != nil {
		t.Fatal(err)
	}
	if len(all) != 24 {
		t.Errorf("got %d operations, want 24", len(all))
	}
	return all
}
