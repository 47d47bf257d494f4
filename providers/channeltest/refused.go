package channeltest

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
	"modelrelay/providers/upstream"
)

// refused records the error of a check: a network error or a refusal. It removes the key from every text.
func (r *Result) refused(err error, key providers.Secret) {
	fault := providers.AsFault(err)
	r.Fault, r.Reason = string(fault.Kind), providers.Shown(fault.Message)
	if fault.Upstream != nil {
		r.Status, r.RequestID = fault.Upstream.Status, fault.Upstream.RequestID
	}
	code, detail := networkFault(err)
	if code == "" || r.Status != 0 {
		code, detail = codeOf(fault), detailOf(fault)
	}
	r.Code, r.Values = code, map[string]string{"detail": providers.Reason(detail, key)}
	if code == "test.other" {
		message := strings.TrimSuffix(fault.Message, ".")
		if fault.Kind == providers.Internal && fault.Err != nil {
			message = fault.Err.Error()
		}
		r.Values["message"] = providers.Reason(message, key)
	}
}

// codeOf returns the verdict of a refusal.
func codeOf(fault *providers.Fault) string {
	switch {
	case fault.Kind == providers.Internal && fault.Err != nil:
	case fault.Blame == providers.BlameKey:
		switch fault.Key {
		case providers.KeyBusy:
			return "test.key_busy"
		case providers.KeyRefused:
			return "test.key_refused"
		case providers.KeyExhausted:
			return "test.key_exhausted"
		case providers.KeyForbidden:
			return "test.key_forbidden"
		}
	case fault.Malformed:
		return "test.odd"
	case fault.Kind == providers.NotFound:
		return "test.not_found"
	}
	return "test.other"
}

// detailOf returns the status and the message of the upstream's refusal, otherwise the cause of the fault.
func detailOf(fault *providers.Fault) string {
	switch reply := fault.Upstream; {
	case reply != nil:
		detail := " (status " + strconv.Itoa(reply.Status)
		if reason := upstream.Reason(reply.Body); reason != "" && !fault.Malformed {
			detail += ": " + reason
		}
		return detail + ")"
	case fault.Err != nil && fault.Kind != providers.Internal:
		return ": " + fault.Err.Error()
	}
	return ""
}

// networkFault returns the code of the failed network step; "" for none.
func networkFault(err error) (code, detail string) {
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
		return "test.unknown_host", providers.Shown(unknown.Name)
	case errors.As(err, &unknown):
		return "test.dns_silent", providers.Shown(unknown.Name)
	case errors.As(err, &unsigned):
		return "test.authority", ""
	case errors.As(err, &named):
		return "test.other_host", providers.WithoutQueries(named.Error())
	case errors.As(err, &invalid):
		return "test.certificate", providers.WithoutQueries(invalid.Error())
	case errors.As(err, &verify), errors.As(err, &alert):
		return "test.tls", providers.WithoutQueries(err.Error())
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"): // which net/http does not export
		return "test.plain", ""
	case errors.Is(err, syscall.ECONNREFUSED):
		return "test.nobody", ""
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "test.unreachable", ""
	case errors.Is(err, context.DeadlineExceeded):
		return "test.late", ""
	}
	return "", ""
}
