package activities

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"modelrelay/storage/tokens"
)

// errUnsigned says that there is no secret to sign with.
var errUnsigned = errors.New("the token has no webhook secret that can sign")

// sign makes the value of webhook-signature, as Standard Webhooks has it: the HMAC-SHA256 of "id.timestamp.body" by
// each secret, one signature beside the other, so that a receiver may know any of them. A malformed secret signs nothing.
func sign(secrets []tokens.Secret, id string, at time.Time, body []byte) (string, error) {
	var signatures []string
	for _, secret := range secrets {
		key, err := secret.Key()
		if err != nil {
			continue
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", id, timestamp(at), body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	if len(signatures) == 0 {
		return "", errUnsigned
	}
	return strings.Join(signatures, " "), nil
}

// timestamp is the value of webhook-timestamp: seconds since 1970.
func timestamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
