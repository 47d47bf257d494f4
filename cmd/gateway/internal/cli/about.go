package cli

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"modelrelay/api"
	"modelrelay/cmd/gateway/internal/buildinfo"
)

// Version is gateway version.
type Version struct {
	Licenses bool `help:"List what the program is linked with, and the licence of each part."`
}

// Run prints the build of the program, or its parts with their licences.
func (c *Version) Run(p *Program) error {
	if c.Licenses {
		return printList(p, buildinfo.Parts(), []string{"PART", "VERSION", "LICENSE"}, func(part buildinfo.Part) []string {
			return []string{part.Name, part.Version, part.License}
		})
	}
	b := p.Build
	return p.showFields(b, fields{{"version", b.Version}, {"commit", b.Commit}, {"commit date", b.Date}, {"go version", b.Go}})
}

// OpenAPI is gateway openapi.
type OpenAPI struct {
	Format string `help:"Output format: yaml or json." enum:"yaml,json" default:"yaml"`
}

// Run prints the document that the gateway serves at /openapi.yaml and /openapi.json.
func (c *OpenAPI) Run(p *Program) error {
	document, err := api.OpenAPI(p.Build.Version)
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
