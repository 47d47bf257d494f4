// Command upstream runs the upstreams that only pretend, alone, for the compose files: unlike the development stack
// it links nothing but them, and listens at the given address.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"modelrelay/dev/upstream"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9100", "address")
	data := flag.String("data", "", "folder of the video jobs; empty: they end with the process")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := upstream.Run(ctx, upstream.Options{
		Listen: *listen, Data: *data, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Ready: func(addr string) { fmt.Fprintln(os.Stdout, "ready", addr) },
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}
