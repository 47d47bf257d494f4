package testcert

import (
	"crypto/ecdsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates of a test.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// File holds its certificate.
	File string
}

// NewAuthority makes an Authority with its certificate in a temporary file.
func NewAuthority(tb testing.TB) *Authority {
	tb.Helper()
	key, serial := newKey(tb)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "a test's authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a := &Authority{key: key, cert: sign(tb, template, template, key, key), File: filepath.Join(tb.TempDir(), "ca.pem")}
	write(tb, a.File, "", a.cert, key)
	return a
}

// Sign writes a certificate for the name, valid until then, and its key into files. It replaces existing files.
func (a *Authority) Sign(tb testing.TB, name string, until time.Time, certFile, keyFile string) {
	tb.Helper()
	key, serial := newKey(tb)
	cert := sign(tb, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-2 * time.Hour),
		NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, a.cert, key, a.key)
	write(tb, certFile, keyFile, cert, key)
}

// Pool returns a pool of only the authority's certificate.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}
