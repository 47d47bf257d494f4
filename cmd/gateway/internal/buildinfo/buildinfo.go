// Package buildinfo has the version of the program, its commit, and the licences of its parts. It imports only the standard library.
package buildinfo

import (
	"cmp"
	"runtime/debug"
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
