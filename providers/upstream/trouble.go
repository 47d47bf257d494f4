package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"

	"modelrelay/providers"
)

// Trouble says in a line, for an operator, why an upstream was not reached or said no, with its own words and without the key.
func Trouble(err error, key providers.Secret) string {
	fault := providers.AsFault(err)
	if words := network(err); words != "" && (fault.Upstream == nil || fault.Upstream.Status == 0) {
		return words
	}
	words := strings.TrimSuffix(fault.Message, ".")
	switch {
	case fault.Kind == providers.Internal && fault.Err != nil:
		words = fault.Err.Error()
	case fault.Blame == providers.BlameKey:
		words = map[providers.KeyTrouble]string{
			providers.KeyBusy: "the key is limited for the moment", providers.KeyRefused: "the key is refused",
			providers.KeyExhausted: "the key's account is out of money or quota", providers.KeyForbidden: "the key may not do this",
		}[fault.Key]
	case fault.Odd:
		words = "the address is wrong: what answers there is not this vendor's API"
	case fault.Kind == providers.NotFound:
		words = "the address is wrong, or the vendor does not know what was asked for"
	}
	if reply := fault.Upstream; reply != nil {
		words += " (status " + strconv.Itoa(reply.Status)
		if said := reasonOf(reply.Body); said != "" && !fault.Odd {
			words += ": " + said
		}
		words += ")"
	} else if fault.Err != nil && fault.Kind != providers.Internal {
		words += ": " + fault.Err.Error()
	}
	return providers.Reason(words, key)
}

// network says which step of reaching an upstream failed, "" where none did.
func network(err error) string {
	var (
		unknown  *net.DNSError
		unsigned x509.UnknownAuthorityError
		named    x509.HostnameError
		invalid  x509.CertificateInvalidError
		verify   *tls.CertificateVerificationError
		record   tls.RecordHeaderError
		alert    tls.AlertError
	)
	switch {
	case errors.As(err, &unknown) && unknown.IsNotFound:
		return "DNS does not know the host " + providers.Shown(unknown.Name)
	case errors.As(err, &unknown):
		return "DNS does not answer for the host " + providers.Shown(unknown.Name)
	case errors.As(err, &unsigned):
		return "TLS: the certificate is signed by an authority that this machine does not trust"
	case errors.As(err, &named):
		return "TLS: the certificate is another host's: " + providers.Words(named.Error())
	case errors.As(err, &invalid):
		return "TLS: the certificate is not valid: " + providers.Words(invalid.Error())
	case errors.As(err, &verify), errors.As(err, &alert):
		return "TLS: " + providers.Words(err.Error())
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"): // which net/http does not export
		return "TLS: the port speaks none; is the address meant to begin with http://?"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection is refused: nothing listens at the address"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no way leads to the address from this machine"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	}
	return ""
}
