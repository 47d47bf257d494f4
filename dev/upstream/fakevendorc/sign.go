package fakevendorc

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"modelrelay/dev/upstream/fake"
)

// Access keys of the fake vendor C begin with accessKey; the secret key to one is secretKey and what follows in it.
const (
	accessKey = "ak-upstream"
	secretKey = "sk-upstream"
)

// maxSkew is how far a signature's date may be from now.
const maxSkew = 15 * time.Minute

// signedKey verifies the V4 signature of Volcengine: the canonical request of volcengine/volc-sdk-golang, base/sign.go.
// The service is cv, the region cn-north-1.
func signedKey(x *fake.Exchange) (string, *fake.Problem) {
	h := x.HTTP.Header
	invalid := func(status int, code, message string) *fake.Problem {
		return &fake.Problem{Status: status, Code: code, Message: message}
	}
	given := h.Get("Authorization")
	if given == "" {
		return "", invalid(http.StatusBadRequest, "100025:InvalidCredential", "The request is missing its signature.")
	}
	fields, ok := authorizationFields(given)
	if !ok {
		return "", invalid(http.StatusBadRequest, "100024:InvalidAuthorization", "Invalid 'Authorization' header")
	}
	key, scope, _ := strings.Cut(fields.credential, "/")
	date := h.Get("X-Date")
	at, err := time.Parse("20060102T150405Z", date)
	switch {
	case err != nil:
		return key, invalid(http.StatusBadRequest, "100004:MissingRequestInfo", "The request is missing timestamp information.")
	case time.Since(at).Abs() > maxSkew:
		return key, invalid(http.StatusBadRequest, "100006:InvalidTimestamp", "The request has expired.")
	case !strings.HasPrefix(key, accessKey):
		return key, invalid(http.StatusUnauthorized, "100009:InvalidAccessKey", "The security token included in the request is invalid.")
	case scope != date[:8]+"/cn-north-1/cv/request":
		return key, invalid(http.StatusBadRequest, "100024:InvalidAuthorization", "Invalid credential scope")
	case !slices.Contains(fields.headers, "host") || !slices.Contains(fields.headers, "x-date") ||
		!slices.Contains(fields.headers, "x-content-sha256"):
		return key, invalid(http.StatusBadRequest, "100024:InvalidAuthorization", "SignedHeaders must hold host, x-content-sha256 and x-date")
	}
	want := fields.sign(x.HTTP, x.Body, scope, date, secretKey+strings.TrimPrefix(key, accessKey))
	if h.Get("X-Content-Sha256") != fake.DigestOf(x.Body) || !hmac.Equal([]byte(want), []byte(fields.signature)) {
		return key, invalid(http.StatusUnauthorized, "100010:SignatureDoesNotMatch",
			"The request signature we calculated does not match the signature you provided. Check your Secret Access Key and signing method.")
	}
	return key, nil
}

// authorization is a taken-apart Authorization header.
type authorization struct {
	credential string
	headers    []string
	signature  string
}

func authorizationFields(header string) (a authorization, ok bool) {
	algorithm, rest, _ := strings.Cut(header, " ")
	for field := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		switch name {
		case "Credential":
			a.credential = value
		case "SignedHeaders":
			a.headers = strings.Split(value, ";")
		case "Signature":
			a.signature = value
		}
	}
	return a, algorithm == "HMAC-SHA256" && a.credential != "" && len(a.headers) > 0 && a.signature != ""
}

// sign computes the signature the header should hold. Clients sign the path they call; the prefix of the fake is theirs too.
func (a authorization) sign(r *http.Request, body []byte, scope, date, secret string) string {
	var headers strings.Builder
	for _, name := range a.headers {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
			if port := (&url.URL{Host: r.Host}).Port(); port == "80" || port == "443" {
				value = strings.TrimSuffix(value, ":"+port)
			}
		}
		headers.WriteString(name + ":" + strings.TrimSpace(value) + "\n")
	}
	canonical := strings.Join([]string{
		r.Method, canonicalPath(r.URL), strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20"),
		headers.String(), strings.Join(a.headers, ";"), fake.DigestOf(body),
	}, "\n")
	key := []byte(secret)
	for part := range strings.SplitSeq(scope, "/") {
		key = hmacSHA256(key, part)
	}
	return hex.EncodeToString(hmacSHA256(key, strings.Join([]string{"HMAC-SHA256", date, scope, fake.DigestOf([]byte(canonical))}, "\n")))
}

// canonicalPath escapes all but the unreserved characters and the slashes.
func canonicalPath(u *url.URL) string {
	parts := strings.Split(u.Path, "/")
	for i := range parts {
		parts[i] = strings.ReplaceAll(url.QueryEscape(parts[i]), "+", "%20")
	}
	return strings.Join(parts, "/")
}

func hmacSHA256(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
