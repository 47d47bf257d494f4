package api_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"modelrelay/api"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestOpenAPI compares the document with the committed one: a change of the interface is a change of this file.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	got, err := api.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "openapi.yaml")
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("the OpenAPI document changed: look at it with go test ./api -run TestOpenAPI -update && git diff api/testdata")
	}
}
