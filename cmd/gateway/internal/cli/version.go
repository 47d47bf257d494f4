package cli

import (
	"runtime/debug"
)

// Version is gateway version.
type Version struct{}

// Build is what the program knows of its own making.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"` // "" outside a checkout; "+dirty" marks uncommitted changes
	Go      string `json:"go"`
}

// ThisBuild reads what the Go command wrote into the binary.
func ThisBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Build{Version: "unknown"}
	}
	b := Build{Version: info.Main.Version, Go: info.GoVersion}
	dirty := false
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Commit = setting.Value
		case "vcs.modified":
			dirty = setting.Value == "true"
		}
	}
	if dirty {
		b.Commit += "+dirty"
	}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	return b
}

// Run prints version, commit and Go version.
func (Version) Run(p *Program) error {
	b := ThisBuild()
	if p.JSON {
		return printJSON(p.Stdout, b)
	}
	return printFields(p.Stdout, fields{{"version", b.Version}, {"commit", b.Commit}, {"go", b.Go}})
}
