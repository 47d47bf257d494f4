package cli

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"modelrelay/cmd/gateway/internal/config"
)

// Health is gateway health.
type Health struct {
	For string `help:"Ask the API whether relay or video works; without it, whether a gateway or worker of this configuration lives." placeholder:"PART"`
}

const (
	// healthTimeout bounds the whole look: a supervisor's own bound is usually five seconds, and then says nothing.
	healthTimeout = 4 * time.Second
	// healthBody bounds what is read of the answer; /readyz is less than 1 KiB.
	healthBody = 64 << 10
)

// Run asks the process of this configuration: /healthz at metrics.listen, which serve and worker both have, or with --for the API's /readyz
// at listen. It fails where that does not answer 200. The image has no shell and no other client for its health check.
func (h *Health) Run(ctx context.Context, p *Program) error {
	cfg, err := p.Load()
	if err != nil {
		return err
	}
	key, address, path := "metrics.listen", cfg.Metrics.Listen, "/healthz"
	switch h.For {
	case "":
	case "relay", "video":
		key, address, path = "listen", cfg.Listen, "/readyz?for="+h.For
	default:
		return &UsageError{Err: fmt.Errorf("--for: wants relay or video, not %q", h.For)}
	}
	if address == "" {
		return fmt.Errorf("%s is empty: no process answers there", key)
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	answer, err := askHere(ctx, key, address, path, wayIn(cfg, h.For != ""))
	if err != nil {
		return err
	}
	return p.say(json.RawMessage(answer), "ok\n")
}

// localHeader is a header of the PROXY protocol, version 2, of a proxy that speaks for itself.
const localHeader = "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"

// wayIn is how this machine's own process is connected to: at its API as a client does, else in clear.
func wayIn(cfg config.Config, public bool) *http.Transport {
	way := &http.Transport{DisableKeepAlives: true} // no proxy: the process is on this machine
	if !public {
		return way
	}
	if cfg.TLS.Enabled() {
		//nolint:gosec // the certificate is for the name that clients use; no secret is sent, and the answer only shows that a process listens
		way.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}
	}
	way.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, fmt.Errorf("connect: %w", err)
		}
		if at, ok := conn.LocalAddr().(*net.TCPAddr); ok && cfg.ProxyProtocol && cfg.Trusts(at.AddrPort().Addr().Unmap()) {
			if _, err := io.WriteString(conn, localHeader); err != nil {
				_ = conn.Close()
				return nil, fmt.Errorf("connect: %w", err)
			}
		}
		return conn, nil
	}
	return way
}

// askHere gets a path from this machine's process at the address of a configuration key, and returns its body where the answer is 200.
func askHere(ctx context.Context, key, address, path string, way *http.Transport) ([]byte, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if port == "0" {
		return nil, fmt.Errorf("%s: port 0 is another one at every start: give it one of its own", key)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // it listens at every address, so at this one
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	scheme := "http://"
	if way.TLSClientConfig != nil {
		scheme = "https://"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+net.JoinHostPort(host, port)+path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	client := &http.Client{Transport: way}
	response, err := client.Do(request)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok { // its own words repeat the address and the method
			err = wrapped.Err
		}
		return nil, fmt.Errorf("%s: no answer: %w", key, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, healthBody))
	if err != nil {
		return nil, fmt.Errorf("%s: the answer broke off: %w", key, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %s", key, response.Status, strings.TrimSpace(string(body)))
	}
	return body, nil
}
