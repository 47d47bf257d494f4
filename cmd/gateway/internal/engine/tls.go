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

// keyOfTLS is the prefix of errors about TLS.
const keyOfTLS = "temporal.tls"

// secured uses the current content of the files for each new connection, so that a certificate can be replaced without a restart.
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

// explain adds the configuration key that caused a failed handshake.
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
		return fmt.Errorf("temporal.tls: the server at temporal.address does not use TLS: %w", err)
	case isRefusal(err):
		return s.refused(err)
	}
	return err
}

// isRefusal reports whether the server closed the connection with a TLS alert.
func isRefusal(err error) bool {
	return err != nil && strings.Contains(err.Error(), "remote error: tls: ")
}

// refused explains why the server may have refused the client's certificate.
func (s secured) refused(err error) error {
	if s.files.Cert == "" {
		return fmt.Errorf("temporal.tls.cert: is empty, and the server may require a certificate: %w", err)
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

// ServerHandshake implements credentials.TransportCredentials. It always fails: this is a client.
func (s secured) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("not a server")
}

// OverrideServerName implements credentials.TransportCredentials. It does nothing: the configuration has the name.
func (s secured) OverrideServerName(string) error { return nil }

// refusable is a connection to a server that may refuse the client's certificate after the handshake, as TLS 1.3 permits.
type refusable struct {
	net.Conn

	by    secured
	heard atomic.Bool // the server has sent data, so it accepted the certificate
}

// Read implements net.Conn and explains a refusal.
func (r *refusable) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	if n > 0 {
		r.heard.Store(true)
	}
	return n, r.explain(err)
}

// Write implements net.Conn. If the server reset the connection during a write, its alert is lost.
func (r *refusable) Write(p []byte) (int, error) {
	n, err := r.Conn.Write(p)
	return n, r.explain(err)
}

func (r *refusable) explain(err error) error {
	reset := errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	if isRefusal(err) || reset && !r.heard.Load() {
		return r.by.refused(err)
	}
	return err
}
