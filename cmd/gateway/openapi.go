package main

import (
	"fmt"

	"github.com/goccy/go-yaml"

	"modelrelay/api"
)

type openAPICmd struct {
	Format string `help:"yaml or json." enum:"yaml,json" default:"yaml"`
}

// Run prints the document that the gateway serves at /openapi.yaml and /openapi.json.
func (c *openAPICmd) Run(m *Main, g *globals) error {
	document, err := api.OpenAPI()
	if err != nil {
		return fmt.Errorf("write the openapi document: %w", err)
	}
	if c.Format == "json" || g.JSON {
		document, err = yaml.YAMLToJSON(document)
		if err != nil {
			return fmt.Errorf("write the openapi document: %w", err)
		}
	}
	_, err = m.Stdout.Write(document)
	return err
}
