package archive

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// The timeouts for credentials are short, because outside of AWS nothing answers at the address of the metadata service.
const (
	credentialsDial    = time.Second
	credentialsTimeout = 5 * time.Second
)

// chain finds credentials where programs on AWS find them: the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
// AWS_SESSION_TOKEN), the shared file (AWS_SHARED_CREDENTIALS_FILE, AWS_PROFILE), or a role: that of a web identity
// (AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN), of a container, or of the instance. It refreshes them before they expire. It is for
// use by one goroutine at a time, as credentials.New ensures.
type chain struct {
	providers []credentials.Provider
	found     credentials.Provider // nil: none yet
}

// newCredentials returns the static credentials of the options, or those that the chain finds.
func newCredentials(opts Options) *credentials.Credentials {
	if opts.AccessKey != "" {
		return credentials.NewStaticV4(opts.AccessKey, opts.SecretKey, "")
	}
	return credentials.New(&chain{providers: []credentials.Provider{
		&credentials.EnvAWS{},
		&credentials.FileAWSCredentials{},
		&credentials.IAM{
			Endpoint: opts.CredentialsEndpoint, Region: opts.Region,
			Client: &http.Client{
				Timeout:   credentialsTimeout,
				Transport: &http.Transport{DialContext: (&net.Dialer{Timeout: credentialsDial}).DialContext, TLSHandshakeTimeout: credentialsTimeout},
			},
		},
	}})
}

// errCredentials reports that no provider has credentials.
var errCredentials = errors.New("archive.access_key is empty, and neither the environment, nor the shared file, nor a role has credentials")

// RetrieveWithCredContext implements credentials.Provider.
func (c *chain) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	var errs []error
	for _, provider := range c.providers {
		value, err := provider.RetrieveWithCredContext(cc)
		switch {
		case err != nil:
			errs = append(errs, err)
		case value.AccessKeyID != "" && value.SecretAccessKey != "":
			c.found = provider
			return value, nil
		}
	}
	return credentials.Value{}, fmt.Errorf("%w: %w", errCredentials, errors.Join(errs...))
}

// Retrieve implements credentials.Provider.
func (c *chain) Retrieve() (credentials.Value, error) { return c.RetrieveWithCredContext(nil) }

// IsExpired implements credentials.Provider.
func (c *chain) IsExpired() bool { return c.found == nil || c.found.IsExpired() }
