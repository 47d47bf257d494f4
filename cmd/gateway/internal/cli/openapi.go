package cli

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"modelrelay/api"
)

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
