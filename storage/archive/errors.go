package archive

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/minio/minio-go/v7"

	"modelrelay/storage"
)

var (
	// ErrKey reports a malformed archive key or prefix.
	ErrKey = errors.New("archive key is not valid")
	// ErrSource reports that the source could not be read; nothing was stored. It wraps the reader's error.
	ErrSource = errors.New("source failed")
	// ErrLength reports a source that was shorter or longer than announced; nothing was stored.
	ErrLength = errors.New("the source has a different length than announced")
	// ErrTooLarge reports a document above MaxDocument.
	ErrTooLarge = errors.New("document is too large")
	// ErrModified reports that an object was replaced during a read.
	ErrModified = errors.New("object changed while it was read")
)

// CheckKey returns ErrKey unless a Store accepts the key.
func CheckKey(key string) error {
	bad := key == "" || len(key) > 1024 || !utf8.ValidString(key) ||
		strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' })
	for segment := range strings.SplitSeq(key, "/") {
		bad = bad || segment == "" || segment == "." || segment == ".."
	}
	if bad {
		return fmt.Errorf("%w: %.80q", ErrKey, key)
	}
	return nil
}

// s3Error wraps an error with the operation: storage.ErrNotFound for a missing object, unchanged for the caller's cancellation and for a
// bad request, storage.ErrUnavailable for all that waiting or an operator can fix, such as throttling or refused credentials.
func s3Error(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	}
	if answer, ok := errors.AsType[minio.ErrorResponse](err); ok && answer.StatusCode != 0 {
		err = fmt.Errorf("%s (%s)", answer.Code, strings.TrimSpace(answer.Message))
		remedy := remedyOf(answer.Code)
		if strings.Contains(answer.Message, "HTTP request to an HTTPS server") {
			remedy = "the store uses TLS: see archive.endpoint, which begins with http://"
		}
		if remedy != "" {
			err = fmt.Errorf("%s: %w", remedy, err)
		}
		switch {
		case answer.Code == minio.NoSuchKey:
			return fmt.Errorf("%s: %w", doing, storage.ErrNotFound)
		case remedy != "", answer.Code == "RequestTimeout", answer.StatusCode >= 500, answer.StatusCode == 429, answer.StatusCode == 408,
			answer.StatusCode == 401, answer.StatusCode == 403, answer.StatusCode == 404, answer.StatusCode == 409:
			return fmt.Errorf("%s: %w: %w", doing, storage.ErrUnavailable, err)
		}
		return fmt.Errorf("%s: %w", doing, err)
	}
	if u, ok := errors.AsType[*url.Error](err); ok && !errors.Is(err, errCredentials) {
		err = u.Err // the address contains the key and, in links, a signature
	}
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	if errors.As(err, &authority) || errors.As(err, &name) || errors.As(err, &invalid) {
		err = fmt.Errorf("the store's certificate is not trusted: see archive.ca and archive.endpoint: %w", err)
	}
	if text := err.Error(); strings.Contains(text, "does not look like a TLS handshake") ||
		strings.Contains(text, "HTTP response to HTTPS client") {
		err = fmt.Errorf("the store does not use TLS: see archive.endpoint, which begins with https://: %w", err)
	}
	return fmt.Errorf("%s: %w: %w", doing, storage.ErrUnavailable, err)
}

// remedyOf returns what an operator should check for the store's answer, "" if not the configuration. Such errors are ErrUnavailable.
func remedyOf(code string) string {
	switch code {
	case "InvalidAccessKeyId", "InvalidClientTokenId":
		return "the store does not know archive.access_key"
	case "SignatureDoesNotMatch":
		return "archive.secret_key is not that of archive.access_key"
	case "ExpiredToken", "InvalidToken", "ExpiredTokenException":
		return "the credentials that were found for archive have expired or are not the store's"
	case "RequestTimeTooSkewed", "RequestExpired":
		return "the clocks of this machine and of the store differ"
	case "AccessDenied", "AllAccessDisabled", "AccountProblem":
		return "the credentials of archive are wrong, or lack this right for archive.bucket"
	case "NoSuchBucket", "InvalidBucketName":
		return "see archive.bucket"
	case "AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException":
		return "see archive.region"
	}
	if strings.HasPrefix(strings.ToLower(code), "kms") { // AWS writes KMS.NotFoundException, MinIO kms:KeyNotFound
		return "the key service of the store refuses, see archive.sse"
	}
	return ""
}
