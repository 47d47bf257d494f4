// Package certs reads certificates and keys from files, and reads them again when they change, so that a certificate can be replaced
// without a restart. It must not know services or the configuration.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// maxFile bounds a file, in bytes. The roots of a whole system are a quarter of it.
const maxFile = 1 << 20

// Files name the TLS files of a client. All may be empty.
type Files struct {
	CA         string `yaml:"ca" type:"file" doc:"PEM file of the CAs that sign the server's certificate; empty: the system's CAs. The gateway reads a changed file again"`
	Cert       string `yaml:"cert" type:"file" doc:"PEM file of the gateway's client certificate with its chain; empty: none. The gateway reads a changed file again"`
	Key        string `yaml:"key" type:"file" doc:"PEM file of the private key of cert"`
	ServerName string `yaml:"server_name" doc:"name in the server's certificate; empty: the host of the connection"`
}

// The parts of Files in a Problem.
const (
	PartCA   = "ca"
	PartCert = "cert"
	PartKey  = "key"
)

// Problem is a file that cannot be used.
type Problem struct {
	Part string
	Err  error
}

// Error names the part.
func (p *Problem) Error() string { return p.Part + ": " + p.Err.Error() }

// Unwrap returns the reason.
func (p *Problem) Unwrap() error { return p.Err }

// Check reads the files and returns the first problem, nil for none.
func (f Files) Check() *Problem {
	config, err := f.load()
	if problem, ok := errors.AsType[*Problem](err); ok {
		return problem
	}
	for i := range config.Certificates {
		if leaf := config.Certificates[i].Leaf; time.Now().After(leaf.NotAfter) {
			return &Problem{PartCert, fmt.Errorf("%s expired on %s", f.Cert, leaf.NotAfter.UTC().Format(time.DateOnly))}
		}
	}
	return nil
}

// load reads the files. Its error is a *Problem.
func (f Files) load() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.ServerName}
	if f.CA != "" {
		text, err := read(f.CA)
		if err != nil {
			return nil, &Problem{PartCA, err}
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, &Problem{PartCA, fmt.Errorf("%s contains no certificate in PEM", f.CA)}
		}
	}
	switch {
	case f.Cert == "" && f.Key == "":
		return config, nil
	case f.Cert == "":
		return nil, &Problem{PartCert, errors.New("is required with key")}
	case f.Key == "":
		return nil, &Problem{PartKey, errors.New("is required with cert")}
	}
	cert, err := read(f.Cert)
	if err != nil {
		return nil, &Problem{PartCert, err}
	}
	key, err := read(f.Key)
	if err != nil {
		return nil, &Problem{PartKey, err}
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, &Problem{PartCert, fmt.Errorf("%s and %s do not match: %w", f.Cert, f.Key, err)}
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// read reads a file. Its error names the file.
func read(path string) ([]byte, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	switch {
	case err != nil:
		return nil, fmt.Errorf("the file cannot be read: %w", err)
	case len(text) > maxFile:
		return nil, fmt.Errorf("the file %s is larger than %d KiB", path, maxFile>>10)
	}
	return text, nil
}

// Source returns the current configuration of its files. It is safe for concurrent use.
type Source struct {
	files Files

	mu     sync.Mutex
	config *tls.Config // nil: not read yet
	found  Versions    // of the files of config
}

// NewSource returns a source. It reads nothing yet.
func NewSource(files Files) *Source { return &Source{files: files} }

// Config returns the TLS configuration of the current files, which the caller must not change. If the files cannot be used, it returns the
// last usable configuration: while a certificate and its key are being replaced, they do not match for a moment.
func (s *Source) Config() (*tls.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := VersionsOf(s.files.CA, s.files.Cert, s.files.Key)
	if s.config != nil && found.Equal(s.found) {
		return s.config, nil
	}
	config, err := s.files.load()
	switch {
	case err == nil:
		s.config, s.found = config, found
	case s.config == nil:
		return nil, err
	}
	return s.config, nil
}

// Versions identify the contents of several files; nil for a file that cannot be found.
type Versions []os.FileInfo

// VersionsOf returns the current versions of files.
func VersionsOf(paths ...string) Versions {
	versions := make(Versions, len(paths))
	for i, path := range paths {
		if info, err := os.Stat(path); err == nil {
			versions[i] = info
		}
	}
	return versions
}

// Equal reports whether the files are the same and unchanged.
func (v Versions) Equal(other Versions) bool {
	return slices.EqualFunc(v, other, func(a, b os.FileInfo) bool {
		if a == nil || b == nil {
			return a == nil && b == nil
		}
		return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
	})
}
