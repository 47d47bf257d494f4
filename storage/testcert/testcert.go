// Package testcert makes certificates for tests.
package testcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Pair is a self-signed certificate for 127.0.0.1 and localhost, in files.
type Pair struct {
	Cert, Key string // files of PEM
	TLS       tls.Certificate
}

// New writes a certificate that is valid for an hour into the folder. It replaces an existing one.
func New(tb testing.TB, dir string) Pair {
	tb.Helper()
	return Ending(tb, dir, time.Now().Add(time.Hour))
}

// Ending is New for a certificate that expires at a time.
func Ending(tb testing.TB, dir string, ends time.Time) Pair {
	tb.Helper()
	return Files(tb, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), ends)
}

// Files is Ending with names of files.
func Files(tb testing.TB, certFile, keyFile string, ends time.Time) Pair {
	tb.Helper()
	key, serial := newKey(tb)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "gateway"}, NotBefore: ends.Add(-48 * time.Hour), NotAfter: ends,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
	}
	cert := sign(tb, template, template, key, key)
	write(tb, certFile, keyFile, cert, key)
	return Pair{Cert: certFile, Key: keyFile, TLS: tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}}
}

// newKey makes a key, and a serial number for its certificate.
func newKey(tb testing.TB) (key *ecdsa.PrivateKey, serial *big.Int) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	if serial, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		tb.Fatal(err)
	}
	return key, serial
}

// sign makes the certificate of a key from a template, signed by the key of another certificate.
func sign(tb testing.TB, template, by *x509.Certificate, key, byKey *ecdsa.PrivateKey) *x509.Certificate {
	tb.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, by, key.Public(), byKey)
	if err != nil {
		tb.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	return cert
}

// write writes a certificate and its key into files. It replaces existing files atomically. An empty name writes no file.
func write(tb testing.TB, certFile, keyFile string, cert *x509.Certificate, key *ecdsa.PrivateKey) {
	tb.Helper()
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: cert.Raw},
		keyFile:  {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if path == "" {
			continue
		}
		if err := os.WriteFile(path+".new", pem.EncodeToMemory(block), 0o600); err != nil {
			tb.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			tb.Fatal(err)
		}
	}
}

// Trusted returns the configuration of a client that trusts only these certificates.
func Trusted(pairs ...Pair) *tls.Config {
	roots := x509.NewCertPool()
	for _, pair := range pairs {
		roots.AddCert(pair.TLS.Leaf)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
}
