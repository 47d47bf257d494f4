package buildinfo

import (
	_ "embed"
	"runtime/debug"
	"strings"
)

// licenses has one line for each part that a binary may contain: its name and its licences as an SPDX expression, separated by a tab.
// dev/licenses writes it.
//
//go:embed licenses.txt
var licenses string

// goLibrary is the name of Go's library and runtime in licenses.txt.
const goLibrary = "std"

// Part is a part of the program: itself, Go's library, a module, or an embedded third-party file.
type Part struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	License string `json:"license"` // an SPDX expression; "unknown" for a module that licenses.txt does not name
}

// Parts returns the parts of this program.
func Parts() []Part {
	recorded, _ := debug.ReadBuildInfo()
	return partsOf(recorded)
}

func partsOf(recorded *debug.BuildInfo) []Part {
	if recorded == nil {
		recorded = new(debug.BuildInfo)
	}
	known := make(map[string]string)
	var embedded []Part
	for line := range strings.Lines(licenses) {
		name, license, _ := strings.Cut(strings.TrimSpace(line), "\t")
		known[name] = license
		if file, version, ok := strings.Cut(name, "@"); ok { // every binary contains it
			embedded = append(embedded, Part{file, version, license})
		}
	}
	part := func(name, version string) Part {
		license := known[name]
		if license == "" {
			license = "unknown"
		}
		return Part{name, version, license}
	}
	parts := []Part{part("modelrelay", version), part(goLibrary, strings.TrimPrefix(recorded.GoVersion, "go"))}
	parts = append(parts, embedded...)
	for _, module := range recorded.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		parts = append(parts, part(module.Path, module.Version))
	}
	return parts
}
