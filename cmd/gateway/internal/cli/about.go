package cli

import (
	"fmt"
	"runtime/debug"

	"go.yaml.in/yaml/v4"

	"modelrelay/api"
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
	return p.showFields(b, fields{{"version", b.Version}, {"commit", b.Commit}, {"go", b.Go}})
}

// OpenAPI is gateway openapi.
type OpenAPI struct {
	Format string `help:"Output format: yaml or json." enum:"yaml,json" default:"yaml"`
}

// Run prints the document that the gateway serves at /openapi.yaml and /openapi.json.
func (c *OpenAPI) Run(p *Program) error {
	document, err := api.OpenAPI()
	if err != nil {
		return fmt.Errorf("write the openapi document: %w", err)
	}
	if c.Format == "json" || p.JSON {
		var content any
		if err := yaml.Load(document, &content); err != nil {
			return fmt.Errorf("write the openapi document: %w", err)
		}
		return printJSON(p.Stdout, content)
	}
	_, err = p.Stdout.Write(document)
	return err
}
