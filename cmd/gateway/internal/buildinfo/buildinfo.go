// Package buildinfo holds the program's version, its commit, and the licences of its parts. It imports the standard library only.
package buildinfo

import (
	"cmp"
	"runtime/debug"
)

// version is set here and nowhere else. The linker sets both for an image, whose build has no checkout:
// -X modelrelay/cmd/gateway/internal/buildinfo.version=… and .commit=…
var (
	version = "0.1.0"
	commit  = "" //nolint:gochecknoglobals // the linker sets it
)

// Info describes the build of the running program. Unknown values are "".
type Info struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`      // "-dirty" follows where the checkout had uncommitted changes
	Date    string `json:"commit_date,omitempty"` // of the commit, RFC 3339
	Go      string `json:"go_version,omitempty"`
}

// Agent is the User-Agent of the requests that the program sends to other servers.
func (i Info) Agent() string { return "modelrelay/" + i.Version }

// Read returns the build of this program: what the linker set, and what the Go command recorded in the binary.
func Read() Info {
	recorded, _ := debug.ReadBuildInfo() // nil where the binary has none
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
