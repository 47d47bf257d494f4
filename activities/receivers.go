package activities

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"code.dny.dev/ssrf"

	"modelrelay/providers/secret"
	"modelrelay/providers/upstream"
	"modelrelay/storage/tokens"
)

const (
	// maxReceiver bounds a webhook's address, in bytes.
	maxReceiver = 2048
	// receiverTimeout bounds one request, DNS and answer included. A receiver should store the event and answer, before it processes it.
	receiverTimeout = 20 * time.Second
	// dialReceiver and shakeReceiver bound the connection within it.
	dialReceiver  = 10 * time.Second
	shakeReceiver = 10 * time.Second
	// answerLimit is the part of an answer's body that is read and discarded, so that the connection can be reused.
	answerLimit = 16 << 10
	headerLimit = 64 << 10
	// idleReceivers and idleReceiversFor bound the idle connections to receivers. Most get an event a minute or less.
	idleReceivers    = 100
	idleReceiversFor = 30 * time.Second
)

var errPrivate = errors.New("leads to a private, loopback or otherwise special network, " +
	"which webhooks.allow_private_networks does not allow")

// CheckReceiver validates the address of a webhook by its text. If private networks are not permitted, each delivery also checks the
// addresses of the name. The error follows the name of the field in a sentence. It does not contain the address, which may hold a
// credential.
func CheckReceiver(address string, private bool) error {
	if len(address) > maxReceiver {
		return errors.New("is longer than " + strconv.Itoa(maxReceiver) + " bytes")
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("must be http://host or https://host")
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || n == 0) {
		return errors.New("must have a port from 1 to 65535")
	}
	switch {
	case u.User != nil:
		return errors.New("must not contain a user or password")
	case u.Fragment != "":
		return errors.New("must not contain a fragment (#)")
	case private:
		return nil
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return errPrivate
	}
	if ip, err := netip.ParseAddr(host); err == nil && upstream.Guard().SafeAddr(ip) != nil {
		return errPrivate
	}
	return nil
}

// ReceiversOptions configure Receivers.
type ReceiversOptions struct {
	// Agent is the User-Agent of every delivery; "": upstream.Product.
	Agent        string
	AllowPrivate bool
	// Resolver looks up names; nil: the system's.
	Resolver *net.Resolver
}

// Receivers sends requests to addresses that clients choose. It checks the dialled address, so a changed DNS entry does not help an
// attacker. It follows no redirect, uses no proxy, and reads little of an answer. It is safe for concurrent use.
type Receivers struct {
	client  *http.Client
	agent   string
	private bool
}

// NewReceivers returns Receivers. Close ends its idle connections.
func NewReceivers(opts ReceiversOptions) *Receivers {
	dialer := &net.Dialer{Timeout: dialReceiver, Resolver: opts.Resolver}
	if !opts.AllowPrivate {
		dialer.Control = upstream.Guard().Safe
	}
	return &Receivers{private: opts.AllowPrivate, agent: cmp.Or(opts.Agent, upstream.Product), client: &http.Client{
		Timeout: receiverTimeout,
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSHandshakeTimeout:    shakeReceiver,
			DisableCompression:     true,
			MaxIdleConns:           idleReceivers,
			IdleConnTimeout:        idleReceiversFor,
			MaxResponseHeaderBytes: headerLimit,
			ForceAttemptHTTP2:      true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close ends the idle connections.
func (r *Receivers) Close() { r.client.CloseIdleConnections() }

// post sends a JSON body once. after is the answer's Retry-After, 0 if there is none. An error means that there was no answer; it contains
// only host and port of the address.
func (r *Receivers) post(
	ctx context.Context, address string, header http.Header, body []byte,
) (status int, after time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0, 0, errors.New("the webhook's address cannot be used")
	}
	req.Header = header
	req.Header.Set("User-Agent", r.agent)
	resp, err := r.client.Do(req)
	if err != nil {
		if outer := (*url.Error)(nil); errors.As(err, &outer) {
			if outer.Timeout() {
				return 0, 0, errors.New("the receiver did not answer in time")
			}
			err = outer.Err // the text of outer contains the address
		}
		if errors.Is(err, ssrf.ErrProhibitedIP) {
			return 0, 0, errPrivate
		}
		return 0, 0, err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, answerLimit) // the body has no meaning
	return resp.StatusCode, upstream.RetryAfter(resp.Header), nil
}

// sign returns webhook-signature by Standard Webhooks: the HMAC-SHA256 of "id.timestamp.body" by each secret that is well-formed.
func sign(secrets []secret.Text, id string, at time.Time, body []byte) (string, error) {
	var signatures []string
	for _, secret := range secrets {
		key, err := tokens.WebhookKey(secret)
		if err != nil {
			continue
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", id, timestamp(at), body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	if len(signatures) == 0 {
		return "", errors.New("the token has no webhook secret that can sign")
	}
	return strings.Join(signatures, " "), nil
}

// timestamp returns the value of webhook-timestamp: seconds since 1970.
func timestamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
