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
	For string `help:"Check whether relay or video works; none: whether a gateway or worker of this configuration runs." placeholder:"PART"`
}

const (
	// healthTimeout bounds the whole check: a supervisor's own timeout is usually five seconds, and reports no reason.
	healthTimeout = 4 * time.Second
	// healthBody bounds the body of the answer in bytes; that of /readyz is less than 1 KiB.
	healthBody = 64 << 10
)

// Run checks the process of this configuration: /healthz at metrics.listen, which serve and worker both have, or with --for the API's
// /readyz at listen. It fails without a status 200. The image has no shell or other client for its health check.
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
		return &UsageError{Err: fmt.Errorf("--for: must be relay or video, not %q", h.For)}
	}
	if address == "" {
		return fmt.Errorf("%s is empty: the process has no address for health checks", key)
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	answer, err := askHere(ctx, key, address, path, localTransport(cfg, h.For != ""))
	if err != nil {
		return err
	}
	return p.sentence(json.RawMessage(answer), "ok\n")
}

// localHeader is a header of the PROXY protocol, version 2, for a connection of the proxy itself.
const localHeader = "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"

// localTransport returns the transport to the process on this machine: for the API like a client's, else without TLS.
func localTransport(cfg config.Config, public bool) *http.Transport {
	transport := &http.Transport{DisableKeepAlives: true} // no proxy: the process is on this machine
	if !public {
		return transport
	}
	if cfg.TLS.Enabled() {
		//nolint:gosec // the certificate is for the name that clients use; no secret is sent, and the answer only shows that a process listens
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}
	}
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
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
	return transport
}

// askHere gets a path from the process on this machine at a configured address, and returns the body of a 200. key is the configuration key
// of the address.
func askHere(ctx context.Context, key, address, path string, transport *http.Transport) ([]byte, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if port == "0" {
		return nil, fmt.Errorf("%s: port 0 changes at every start: set a fixed port", key)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // it listens at every address
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	scheme := "http://"
	if transport.TLSClientConfig != nil {
		scheme = "https://"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+net.JoinHostPort(host, port)+path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	client := &http.Client{Transport: transport}
	response, err := client.Do(request)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok { // its text repeats the address and the method
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
