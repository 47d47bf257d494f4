package api_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"modelrelay/api"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestTagsAreListed: the document names every category it uses, once, and none besides.
func TestTagsAreListed(t *testing.T) {
	t.Parallel()
	var document struct {
		Tags  []struct{ Name string }
		Paths map[string]map[string]struct{ Tags []string }
	}
	decode(t, newGateway(t, nil, nil).do(t, request("GET", "/openapi.json", "")).Body.Bytes(), &document)
	used := make(map[string]bool)
	for _, operations := range document.Paths {
		for _, operation := range operations {
			for _, tag := range operation.Tags {
				used[tag] = true
			}
		}
	}
	for _, tag := range document.Tags {
		if !used[tag.Name] {
			t.Errorf("%q is listed twice, or nothing has it", tag.Name)
		}
		delete(used, tag.Name)
	}
	if len(used) > 0 {
		t.Errorf("not listed: %v", used)
	}
}

// TestOpenAPI compares the document with the committed one: a change of the interface is a change of this file.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	got, err := api.OpenAPI("test")
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
