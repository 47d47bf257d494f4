// Command print prints the build information of its binary as JSON. A test builds it as an image is built.
package main

import (
	"encoding/json"
	"os"

	"modelrelay/cmd/gateway/internal/buildinfo"
)

func main() { _ = json.NewEncoder(os.Stdout).Encode(buildinfo.Read()) }
