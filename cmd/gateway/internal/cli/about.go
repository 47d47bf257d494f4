package cli

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"modelrelay/api"
	"modelrelay/cmd/gateway/docs"
	"modelrelay/cmd/gateway/internal/buildinfo"
)

// Version is gateway version.
type Version struct {
	Licenses bool `help:"List the linked modules and their licences."`
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

// Docs is gateway docs.
type Docs struct {
	Page string `arg:"" optional:"" help:"Page of the manual, such as use/python; the index without it." default:"index"`
}

// Run prints a page of the manual as Markdown.
func (c *Docs) Run(p *Program) error {
	page, err := docs.Pages.ReadFile(strings.TrimSuffix(strings.TrimPrefix(c.Page, "/"), ".md") + ".md")
	if err != nil {
		return &UsageError{fmt.Errorf("the manual has no page %q; gateway docs lists the pages", c.Page)}
	}
	_, err = p.Stdout.Write(page)
	return err
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
