package vendorc

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"modelrelay/providers"
)

const (
	// region and service are the same for every visual model and every host.
	region  = "cn-north-1"
	service = "cv"

	algorithm  = "HMAC-SHA256"
	terminator = "request"
	dateFormat = "20060102T150405Z"
	dayLength  = len("20060102")
)

// CheckKey refuses a key that is not an access key and its secret key.
func CheckKey(key providers.Secret) error {
	if access, secret := split(key); access == "" || secret == "" {
		return errors.New("must be ACCESS_KEY:SECRET_KEY")
	}
	return nil
}

// split splits a key. A secret key may contain colons.
func split(key providers.Secret) (access, secret string) {
	access, secret, _ = strings.Cut(key.Reveal(), ":")
	return access, secret
}

func authorize(req *http.Request, key providers.Secret) error {
	from, err := req.GetBody()
	if err != nil {
		return err
	}
	body, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	sign(req, body, key, time.Now())
	return nil
}

// sign adds the vendor's V4 signature of a request and its body. It is AWS's with other names: the signing key is
// derived without a prefix, and every header that begins with X- is signed with host and content type.
func sign(req *http.Request, body []byte, key providers.Secret, now time.Time) {
	access, secret := split(key)
	date, sum := now.UTC().Format(dateFormat), digest(body)
	req.Header.Set("X-Date", date)
	req.Header.Set("X-Content-Sha256", sum)

	signed := map[string]string{"host": hostOf(req.URL)}
	for name, values := range req.Header {
		if name == "Content-Type" || strings.HasPrefix(name, "X-") {
			signed[strings.ToLower(name)] = strings.TrimSpace(values[0])
		}
	}
	names := slices.Sorted(maps.Keys(signed))
	var headers strings.Builder
	for _, name := range names {
		headers.WriteString(name + ":" + signed[name] + "\n")
	}
	canonical := strings.Join([]string{
		req.Method, escapePath(req.URL.Path), strings.ReplaceAll(req.URL.Query().Encode(), "+", "%20"),
		headers.String(), strings.Join(names, ";"), sum,
	}, "\n")

	day := date[:dayLength]
	scope := strings.Join([]string{day, region, service, terminator}, "/")
	derived := []byte(secret)
	for _, part := range []string{day, region, service, terminator} {
		derived = mac(derived, part)
	}
	signature := mac(derived, strings.Join([]string{algorithm, date, scope, digest([]byte(canonical))}, "\n"))
	req.Header.Set("Authorization", algorithm+" Credential="+access+"/"+scope+
		", SignedHeaders="+strings.Join(names, ";")+", Signature="+hex.EncodeToString(signature))
}

// hostOf returns the signed host: without the default port.
func hostOf(u *url.URL) string {
	if port := u.Port(); port == "80" || port == "443" {
		return u.Hostname()
	}
	return u.Host
}

// escapePath escapes everything but the unreserved characters and the slashes.
func escapePath(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(url.QueryEscape(part), "+", "%20")
	}
	return strings.Join(parts, "/")
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
