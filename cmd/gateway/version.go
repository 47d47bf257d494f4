package main

import (
	"runtime/debug"
)

type versionCmd struct{}

// build is what the program knows of its own making.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"` // "" outside a checkout; "+dirty" marks uncommitted changes
	Go      string `json:"go"`
}

// thisBuild reads what the Go command wrote into the binary.
func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return build{Version: "unknown"}
	}
	b := build{Version: info.Main.Version, Go: info.GoVersion}
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
func (versionCmd) Run(m *Main, g *globals) error {
	b := thisBuild()
	if g.JSON {
		return printJSON(m.Stdout, b)
	}
	return printFields(m.Stdout, fields{{"version", b.Version}, {"commit", b.Commit}, {"go", b.Go}})
}
