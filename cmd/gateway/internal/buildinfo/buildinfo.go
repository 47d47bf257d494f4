// Package buildinfo has the version of the program, its commit, and the licences of its parts. It imports only the standard library.
package buildinfo

import (
	"cmp"
	_ "embed"
	"runtime/debug"
	"strings"
)

// version is only set here. For an image, which is built without a checkout, the linker sets both: -X
// modelrelay/cmd/gateway/internal/buildinfo.version=… and .commit=…
var (
	version = "0.1.0"
	commit  = "" //nolint:gochecknoglobals // the linker sets it
)

// Info describes the build of the running program. Unknown values are "".
type Info struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`      // with "-dirty" if the checkout had uncommitted changes
	Date    string `json:"commit_date,omitempty"` // of the commit, RFC 3339
	Go      string `json:"go_version,omitempty"`
}

// Agent returns the User-Agent of the program's requests to other servers.
func (i Info) Agent() string { return "modelrelay/" + i.Version }

// Read returns the build of this program, from the linker and from the Go command's record in the binary.
func Read() Info {
	recorded, _ := debug.ReadBuildInfo() // nil if the binary has none
	return read(recorded)
}

func read(recorded *debug.BuildInfo) Info {
	info := Info{Version: version, Commit: commit}
	if recorded == nil {
		return info
	}
	info.Go = recorded.GoVersion
	settings := make(map[string]string, len(recorded.Settings))
	for _, setting := range recorded.Settings {
		settings[setting.Key] = setting.Value
	}
	info.Date = settings["vcs.time"]
	revision := settings["vcs.revision"]
	if revision != "" && settings["vcs.modified"] == "true" {
		revision += "-dirty"
	}
	info.Commit = cmp.Or(info.Commit, revision)
	return info
}

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
