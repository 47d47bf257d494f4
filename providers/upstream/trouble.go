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

// Trouble is why an upstream was not reached or said no, for an operator.
type Trouble struct {
	// Words say it in a line, with the upstream's own words and without the key.
	Words string
	// Code names the sentence of TroubleSentences that Words are, "" where they are the fault's own. Detail stands in it: a host, or
	// what the upstream said.
	Code, Detail string
}

// TroubleSentences are the sentences of a Trouble by their code, for who has them in other languages: {detail} is its Detail.
func TroubleSentences() map[string]string {
	return map[string]string{
		"trial.unknown_host":  "DNS does not know the host {detail}",
		"trial.dns_silent":    "DNS does not answer for the host {detail}",
		"trial.authority":     "TLS: the certificate is signed by an authority that this machine does not trust",
		"trial.other_host":    "TLS: the certificate is another host's: {detail}",
		"trial.certificate":   "TLS: the certificate is not valid: {detail}",
		"trial.tls":           "TLS: {detail}",
		"trial.plain":         "TLS: the port speaks none; is the address meant to begin with http://?",
		"trial.nobody":        "the connection is refused: nothing listens at the address",
		"trial.unreachable":   "no way leads to the address from this machine",
		"trial.late":          "no answer in time",
		"trial.key_busy":      "the key is limited for the moment{detail}",
		"trial.key_refused":   "the key is refused{detail}",
		"trial.key_exhausted": "the key's account is out of money or quota{detail}",
		"trial.key_forbidden": "the key may not do this{detail}",
		"trial.odd":           "the address is wrong: what answers there is not this vendor's API{detail}",
		"trial.not_found":     "the address is wrong, or the vendor does not know what was asked for{detail}",
	}
}

// keyTrouble is the code of what is wrong with a key.
func keyTrouble(trouble providers.KeyTrouble) string {
	return map[providers.KeyTrouble]string{
		providers.KeyBusy: "trial.key_busy", providers.KeyRefused: "trial.key_refused",
		providers.KeyExhausted: "trial.key_exhausted", providers.KeyForbidden: "trial.key_forbidden",
	}[trouble]
}

// TroubleOf finds what is wrong. key is taken out of every word.
func TroubleOf(err error, key providers.Secret) Trouble {
	fault := providers.AsFault(err)
	trouble := Trouble{Words: strings.TrimSuffix(fault.Message, ".")}
	if code, detail := network(err); code != "" && (fault.Upstream == nil || fault.Upstream.Status == 0) {
		trouble.Code, trouble.Detail = code, detail
		return trouble.shown(key)
	}
	switch {
	case fault.Kind == providers.Internal && fault.Err != nil:
		trouble.Words = fault.Err.Error()
	case fault.Blame == providers.BlameKey:
		trouble.Code = keyTrouble(fault.Key)
	case fault.Odd:
		trouble.Code = "trial.odd"
	case fault.Kind == providers.NotFound:
		trouble.Code = "trial.not_found"
	}
	if reply := fault.Upstream; reply != nil {
		trouble.Detail = " (status " + strconv.Itoa(reply.Status)
		if said := reasonOf(reply.Body); said != "" && !fault.Odd {
			trouble.Detail += ": " + said
		}
		trouble.Detail += ")"
	} else if fault.Err != nil && fault.Kind != providers.Internal {
		trouble.Detail = ": " + fault.Err.Error()
	}
	return trouble.shown(key)
}

// shown makes a trouble fit to be shown.
func (t Trouble) shown(key providers.Secret) Trouble {
	if t.Code == "" {
		t.Words = providers.Reason(t.Words+t.Detail, key)
		return t
	}
	t.Detail = providers.Reason(t.Detail, key)
	t.Words = strings.ReplaceAll(TroubleSentences()[t.Code], "{detail}", t.Detail)
	return t
}

// network says which step of reaching an upstream failed; the code is "" where none did.
func network(err error) (code, detail string) {
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
		return "trial.unknown_host", providers.Shown(unknown.Name)
	case errors.As(err, &unknown):
		return "trial.dns_silent", providers.Shown(unknown.Name)
	case errors.As(err, &unsigned):
		return "trial.authority", ""
	case errors.As(err, &named):
		return "trial.other_host", providers.Words(named.Error())
	case errors.As(err, &invalid):
		return "trial.certificate", providers.Words(invalid.Error())
	case errors.As(err, &verify), errors.As(err, &alert):
		return "trial.tls", providers.Words(err.Error())
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"): // which net/http does not export
		return "trial.plain", ""
	case errors.Is(err, syscall.ECONNREFUSED):
		return "trial.nobody", ""
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "trial.unreachable", ""
	case errors.Is(err, context.DeadlineExceeded):
		return "trial.late", ""
	}
	return "", ""
}
