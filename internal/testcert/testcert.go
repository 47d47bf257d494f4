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

// Pair is a certificate that signs itself, for 127.0.0.1 and localhost, in files.
type Pair struct {
	Cert, Key string // files of PEM
	TLS       tls.Certificate
}

// New writes a certificate that lasts for an hour into the folder, in place of one that is there.
func New(tb testing.TB, dir string) Pair {
	tb.Helper()
	return Ending(tb, dir, time.Now().Add(time.Hour))
}

// Ending is New for a certificate that ends at a time.
func Ending(tb testing.TB, dir string, ends time.Time) Pair {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "gateway"}, NotBefore: ends.Add(-48 * time.Hour), NotAfter: ends,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		tb.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	pair := Pair{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), TLS: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}
	if pair.TLS.Leaf, err = x509.ParseCertificate(der); err != nil {
		tb.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{pair.Cert: {Type: "CERTIFICATE", Bytes: der}, pair.Key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path+".new", pem.EncodeToMemory(block), 0o600); err != nil {
			tb.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			tb.Fatal(err)
		}
	}
	return pair
}

// Trusted is what a client trusts the certificates with, and nothing else.
func Trusted(pairs ...Pair) *tls.Config {
	roots := x509.NewCertPool()
	for _, pair := range pairs {
		roots.AddCert(pair.TLS.Leaf)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
}
