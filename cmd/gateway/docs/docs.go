// Package docs has the manual: Markdown files, which the gateway serves at /docs/ and prints with gateway docs.
package docs

import "embed"

// Pages are the files of the manual, by their path from this folder.
//
//go:embed *.md */*.md
var Pages embed.FS
