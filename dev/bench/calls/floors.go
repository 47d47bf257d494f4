package calls

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/stage"
)

// floors measures the short calls of the gateway beside other proxies, for orientation: the floor with a pool of copy
// buffers, which it lacks by itself, and nginx, where it is installed.
func floors(ctx context.Context, b *Bench, report *figures.Report) error {
	plain, gateway, err := b.pair(ctx)
	if err != nil {
		return err
	}
	others, err := b.otherProxies(ctx, plain)
	if err != nil {
		return err
	}
	want, err := b.warm(ctx, append(slices.Clone(others), gateway)...)
	if err != nil {
		return err
	}
	o := b.sizes
	for _, other := range others {
		var cpu figures.Series
		err := takeTurns(b.Options.Rounds, other, gateway, func(to target) error {
			round, err := chatRound(ctx, to, want, o.Connections, o.Requests)
			if err == nil {
				cpu.Add(to.name, round.cpu.Seconds()*1000/float64(o.Requests))
			}
			return err
		})
		if err != nil {
			return err
		}
		report.Compare(fmt.Sprintf("chat, %d connections, beside %s", o.Connections, other.name), "CPU per 1,000", "s", cpu)
	}
	return nil
}

// otherProxies starts the proxies that floors has beside the plain one.
func (b *Bench) otherProxies(ctx context.Context, like target) ([]target, error) {
	pooled, err := b.proxy(ctx, "--pool")
	if err != nil {
		return nil, err
	}
	as := func(name string, c *stage.Child) target {
		other := like
		other.name, other.addr, other.pid = name, c.Addr, c.PID()
		return other
	}
	others := []target{as("the floor with a pool of buffers", pooled)}
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		b.Options.Log.Info("nginx is not installed and left out")
		return others, nil //nolint:nilerr // said in the log: it is for orientation
	}
	c, err := b.nginx(ctx, nginx)
	if err != nil {
		return nil, err
	}
	return append(others, as("nginx", c)), nil
}

// nginx starts one process of nginx that passes everything to the upstream.
func (b *Bench) nginx(ctx context.Context, program string) (*stage.Child, error) {
	addr, err := stage.FreeAddress()
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(b.Options.Data, "nginx")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("nginx: %w", err)
	}
	file := filepath.Join(folder, "nginx.conf")
	text := fmt.Appendf(nil, `daemon off; master_process off; pid nginx.pid; error_log stderr warn;
events { worker_connections 4096; }
http {
  access_log off; client_body_temp_path body; proxy_temp_path proxy; keepalive_requests 1000000000;
  upstream up { server %s; keepalive 1024; keepalive_requests 1000000000; }
  server {
    listen %s;
    location / { proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }
  }
}
`, b.Upstream.Addr, addr)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, fmt.Errorf("nginx: %w", err)
	}
	c, err := b.Start(ctx, &stage.Child{Name: "nginx", Addr: addr}, stage.Connects, program, "-p", folder, "-c", file)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// proxy starts a floor with arguments beyond the usual ones.
func (b *Bench) proxy(ctx context.Context, args ...string) (*stage.Child, error) {
	addr, err := stage.FreeAddress()
	if err != nil {
		return nil, err
	}
	args = append([]string{"--listen", addr, "--upstream", b.Upstream.Addr}, args...)
	c, err := b.Start(ctx, &stage.Child{Name: "floor", Addr: addr}, stage.Connects, b.FloorBinary(), args...)
	if err != nil {
		return nil, err
	}
	return c, nil
}
