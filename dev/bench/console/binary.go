package console

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"modelrelay/dev/bench/figures"
)

const (
	// made is the file of the gateway that makes the console; without it the linker leaves out all that the console alone needs.
	made = "cmd/gateway/console.go"
	// unmade stands in its place.
	unmade = `package main

import (
	"net/http"

	"modelrelay/storage/tokens"
)

func (*parts) console(*tokens.Store) func(http.Handler) http.Handler { return nil }
`
	// binaryGrowth is how much larger the console may make the gateway, in MB.
	binaryGrowth = 1.5
)

// binary builds the gateway without the console, and compares the two files.
func (b *Bench) binary(ctx context.Context, report *figures.Report, load string) error {
	stub, err := b.WriteConfig("unmade.go", []byte(unmade))
	if err != nil {
		return err
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{made: stub}})
	if err != nil {
		return fmt.Errorf("write the overlay: %w", err)
	}
	overlay, err := b.WriteConfig("overlay.json", text)
	if err != nil {
		return err
	}
	small := b.GatewayBinary() + "-without-console"
	defer os.Remove(small) //nolint:errcheck // the folder goes with it
	if err := b.Options.Gateway(ctx, small, "-overlay", overlay); err != nil {
		return err
	}
	var sizes [2]int64
	for i, file := range []string{small, b.GatewayBinary()} {
		info, err := os.Stat(file)
		if err != nil {
			return fmt.Errorf("measure a binary: %w", err)
		}
		sizes[i] = info.Size()
	}
	report.AddOne(load, "growth of the binary", "MB", figures.Megabytes(sizes[1]-sizes[0]), figures.AtMost(binaryGrowth))
	return nil
}
