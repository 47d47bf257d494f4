package config_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"modelrelay/cmd/gateway/internal/config"
)

var update = flag.Bool("update", false, "write the generated page of the manual")

// TestManualGenerated compares the page of the configuration file with the code.
func TestManualGenerated(t *testing.T) {
	t.Parallel()
	file, page := filepath.Join("..", "..", "docs", "reference", "config.md"), configReference()
	if *update {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != page {
		t.Errorf("%s differs from the code (%v): go test ./cmd/gateway/internal/config -run TestManualGenerated -update", file, err)
	}
}

// configReference returns the page of the configuration file: a table of keys for each section.
func configReference() string {
	var b strings.Builder
	b.WriteString("# Configuration\n\nFor an operator. Every key of the configuration file, generated from the code.\n\n" +
		"The file is YAML. The gateway refuses an unknown key with its line and column. `${NAME}` is the value of an environment " +
		"variable, and `${file:PATH}` the text of a file, relative to the configuration's folder. A reload applies the keys marked " +
		"*live*; the others apply at a restart.\n")
	section := ""
	for _, key := range config.Keys() {
		name, _, nested := strings.Cut(key.Path, ".")
		if name = strings.TrimSuffix(name, "[]"); !nested {
			name = "top level"
		}
		if name != section {
			section = name
			fmt.Fprintf(&b, "\n## %s\n\n| key | default | meaning |\n|---|---|---|\n", section)
		}
		standard, live := "", ""
		if key.Default != "" {
			standard = "`" + key.Default + "`"
		}
		if key.Live {
			live = " *(live)*"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s%s |\n", key.Path, standard, key.Doc, live)
	}
	return b.String()
}
