package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// TestList reads the list of this test's own binary.
func TestList(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run([]string{self}, &out); err != nil {
		t.Fatal(err)
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(&out, cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	found := map[string]cyclonedx.Component{}
	for _, part := range *bom.Components {
		found[part.Name] = part
	}
	lib := found["github.com/CycloneDX/cyclonedx-go"]
	if lib.Version == "" || lib.Hashes == nil || !strings.HasPrefix(lib.PackageURL, "pkg:golang/github.com/CycloneDX/cyclonedx-go@v") {
		t.Errorf("the library that this test is built of: %+v", lib)
	}
	if found["stdlib"].Version == "" {
		t.Error("Go's own library is not in the list")
	}
	for _, args := range [][]string{nil, {"/dev/null"}, {self, self}} {
		if err := run(args, &out); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
