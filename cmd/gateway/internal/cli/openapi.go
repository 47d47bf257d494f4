package cli

import (
	"fmt"

	"github.com/goccy/go-yaml"

	"modelrelay/api"
)

// OpenAPI is gateway openapi.
type OpenAPI struct {
	Format string `help:"yaml or json." enum:"yaml,json" default:"yaml"`
}

// Run prints the document that the gateway serves at /openapi.yaml and /openapi.json.
func (c *OpenAPI) Run(p *Program) error {
	document, err := api.OpenAPI()
	if err != nil {
		return fmt.Errorf("write the openapi document: %w", err)
	}
	if c.Format == "json" || p.JSON {
		document, err = yaml.YAMLToJSON(document)
		if err != nil {
			return fmt.Errorf("write the openapi document: %w", err)
		}
	}
	_, err = p.Stdout.Write(document)
	return err
}
