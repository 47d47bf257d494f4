package engine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc/credentials"

	"modelrelay/cmd/gateway/internal/certs"
)

// keyOfTLS begins what goes wrong with TLS.
const keyOfTLS = "temporal.tls"

// secured speaks TLS with what the files hold when a connection is made, so that a certificate is replaced without a restart.
type secured struct {
	files  certs.Files
	source *certs.Source
}

func newSecured(files certs.Files) secured { return secured{files, certs.NewSource(files)} }

// ClientHandshake implements credentials.TransportCredentials.
func (s secured) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	config, err := s.source.Config()
	if err != nil {
		return nil, nil, fmt.Errorf("%s.%w", keyOfTLS, err)
	}
	conn, info, err := credentials.NewTLS(config).ClientHandshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, s.explain(err)
	}
	return &refusable{Conn: conn, by: s}, info, nil
}

// explain names the key that is to blame for a handshake that failed.
func (s secured) explain(err error) error {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		plain     tls.RecordHeaderError
	)
	signers := "the system's certificates"
	if s.files.CA != "" {
		signers = "those of " + s.files.CA
	}
	switch {
	case errors.As(err, &authority):
		return fmt.Errorf("temporal.tls.ca: the server's certificate is signed by none of %s: %w", signers, err)
	case errors.As(err, &host):
		return fmt.Errorf("temporal.tls.server_name: the server's certificate is for another name: %w", err)
	case errors.As(err, &invalid):
		return fmt.Errorf("temporal.tls: the server's certificate cannot be accepted: %w", err)
	case errors.As(err, &plain):
		return fmt.Errorf("temporal.tls: the server at temporal.address does not speak TLS: %w", err)
	case isRefusal(err):
		return s.refused(err)
	}
	return err
}

// isRefusal tells whether the server ended the connection over TLS itself.
func isRefusal(err error) bool {
	return err != nil && strings.Contains(err.Error(), "remote error: tls: ")
}

// refused says why the server may not have wanted the client's certificate.
func (s secured) refused(err error) error {
	if s.files.Cert == "" {
		return fmt.Errorf("temporal.tls.cert: is empty, and the server may want a certificate: %w", err)
	}
	why := ""
	if config, failed := s.source.Config(); failed == nil && len(config.Certificates) > 0 && config.Certificates[0].Leaf != nil {
		switch leaf, now := config.Certificates[0].Leaf, time.Now(); {
		case now.After(leaf.NotAfter):
			why = ", which expired on " + leaf.NotAfter.UTC().Format(time.RFC3339)
		case now.Before(leaf.NotBefore):
			why = ", which is not valid before " + leaf.NotBefore.UTC().Format(time.RFC3339)
		}
	}
	return fmt.Errorf("temporal.tls.cert: the server refuses the certificate of %s%s: %w", s.files.Cert, why, err)
}

// Info implements credentials.TransportCredentials.
func (s secured) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls", ServerName: s.files.ServerName} //nolint:staticcheck // it sets the authority as well, and gRPC still reads it
}

// Clone implements credentials.TransportCredentials.
func (s secured) Clone() credentials.TransportCredentials { return s }

// ServerHandshake implements credentials.TransportCredentials for servers, which this is not.
func (s secured) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("not a server")
}

// OverrideServerName implements credentials.TransportCredentials: the configuration has a key for it.
func (s secured) OverrideServerName(string) error { return nil }

// refusable is a connection whose server may refuse the client's certificate after the handshake, as TLS 1.3 has it.
type refusable struct {
	net.Conn

	by    secured
	heard atomic.Bool // the server has sent something, so it took the certificate
}

// Read reads, and says what a refusal means.
func (r *refusable) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	if n > 0 {
		r.heard.Store(true)
	}
	return n, r.told(err)
}

// Write writes. What the server said with its refusal is lost where it reset the connection while this was written.
func (r *refusable) Write(p []byte) (int, error) {
	n, err := r.Conn.Write(p)
	return n, r.told(err)
}

func (r *refusable) told(err error) error {
	reset := errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	if isRefusal(err) || reset && !r.heard.Load() {
		return r.by.refused(err)
	}
	return err
}
