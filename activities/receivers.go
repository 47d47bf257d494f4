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
	// maxReceiver is the length of a webhook's address in bytes.
	maxReceiver = 2048
	// receiverTimeout bounds one delivery from the first lookup to the end of the answer: a receiver should note the
	// event and answer, not work on it.
	receiverTimeout = 20 * time.Second
	// dialReceiver and shakeReceiver bound the making of a connection within it.
	dialReceiver  = 10 * time.Second
	shakeReceiver = 10 * time.Second
	// answerLimit is how many bytes of an answer's body are read, so that the connection can be kept; they say nothing.
	answerLimit = 16 << 10
	// headerLimit bounds an answer's header in bytes.
	headerLimit = 64 << 10
	// keptReceivers and keptFor bound the idle connections to receivers. Most see an event a minute or less.
	keptReceivers = 100
	keptFor       = 30 * time.Second
)

// errPrivate is why an address is refused that leads to the gateway's own surroundings.
var errPrivate = errors.New("leads to a private, loopback or otherwise special network, which webhooks.allow_private_networks does not allow")

// CheckReceiver judges the address of a webhook by its text; nil means that it may be used. Where private networks are
// not allowed, a name is judged again at each delivery by what it stands for then. The error's words follow the name of
// the field; they do not repeat the address, which may hold a credential.
func CheckReceiver(address string, private bool) error {
	if len(address) > maxReceiver {
		return errors.New("is longer than " + strconv.Itoa(maxReceiver) + " bytes")
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("wants http://host or https://host")
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || n == 0) {
		return errors.New("wants a port from 1 to 65535")
	}
	switch {
	case u.User != nil:
		return errors.New("wants no user and password")
	case u.Fragment != "":
		return errors.New("wants nothing after #")
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

// ReceiversOptions may be nil.
type ReceiversOptions struct {
	// Agent is the User-Agent of every delivery; "" means upstream.Product.
	Agent string
	// AllowPrivate lets deliveries go to private and loopback addresses too.
	AllowPrivate bool
	// Resolver looks names up; nil means the system's.
	Resolver *net.Resolver
}

// Receivers is the one way to addresses that clients chose. It judges the address that is actually dialled, so a name
// that stands for another one by then helps nobody, follows no redirect, uses no proxy, and reads little of an answer.
// Safe for concurrent use.
type Receivers struct {
	client  *http.Client
	agent   string
	private bool
}

// NewReceivers makes a Receivers; Close ends its idle connections.
func NewReceivers(opts *ReceiversOptions) *Receivers {
	if opts == nil {
		opts = new(ReceiversOptions)
	}
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
			MaxIdleConns:           keptReceivers,
			IdleConnTimeout:        keptFor,
			MaxResponseHeaderBytes: headerLimit,
			ForceAttemptHTTP2:      true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close ends idle connections.
func (r *Receivers) Close() { r.client.CloseIdleConnections() }

// receipt is a receiver's answer.
type receipt struct {
	status int
	// after is how long it asks to be left alone, 0 when it does not say.
	after time.Duration
}

// post sends a JSON body once. An error means that there was no answer; its words hold nothing of the address but host
// and port.
func (r *Receivers) post(ctx context.Context, address string, header http.Header, body []byte) (receipt, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return receipt{}, errors.New("the webhook's address cannot be used")
	}
	req.Header = header
	req.Header.Set("User-Agent", r.agent)
	resp, err := r.client.Do(req)
	if err != nil {
		if outer := (*url.Error)(nil); errors.As(err, &outer) {
			if outer.Timeout() {
				return receipt{}, errors.New("the receiver did not answer in time")
			}
			err = outer.Err // its own text would add the address
		}
		if errors.Is(err, ssrf.ErrProhibitedIP) {
			return receipt{}, errPrivate
		}
		return receipt{}, err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, answerLimit) // what is left, or breaks off, says nothing
	return receipt{status: resp.StatusCode, after: upstream.RetryAfter(resp.Header)}, nil
}

// errUnsigned says that there is no secret to sign with.
var errUnsigned = errors.New("the token has no webhook secret that can sign")

// sign makes the value of webhook-signature, as Standard Webhooks has it: the HMAC-SHA256 of "id.timestamp.body" by
// each secret, one signature beside the other, so that a receiver may know any of them. A malformed secret signs nothing.
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
		return "", errUnsigned
	}
	return strings.Join(signatures, " "), nil
}

// timestamp is the value of webhook-timestamp: seconds since 1970.
func timestamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
