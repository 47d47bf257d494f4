// Package proxyprotocol reads the header of the PROXY protocol, versions 1 and 2, with which a load balancer that passes bytes
// on says whom a connection comes from. The protocol is described at
// https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt.
//
// It knows no server and no listener, and must import neither.
package proxyprotocol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
)

const (
	// binarySign begins a header of version 2, textSign one of version 1.
	binarySign = "\r\n\r\n\x00\r\nQUIT\n"
	textSign   = "PROXY "
	// longestText is the longest header of version 1, its line end with it, in bytes.
	longestText = 107
	// longestRest bounds what a header of version 2 holds behind its length, in bytes. Addresses take 36; the rest are notes
	// that are not read, of which the certificate of a client is the longest.
	longestRest = 4 << 10
	// fixedRest is what of a header of version 2 stands behind the sign: version and command, family, length.
	fixedRest = 4
	// sizes of the addresses and ports of both ends, in bytes.
	size4, size6 = 12, 36
)

// The words of version 2.
const (
	version2     = 0x20
	commandLocal = 0x0
	commandProxy = 0x1
	familyTCP4   = 0x11
	familyTCP6   = 0x21
)

// ErrNoHeader says that a connection begins with something else.
var ErrNoHeader = errors.New("the connection does not begin with a PROXY header")

// Header is what a header says.
type Header struct {
	// Local: the proxy speaks for itself, as in a health check.
	Local bool
	// Source is where the connection comes from, the zero AddrPort where the proxy does not know or for a Local one.
	Source netip.AddrPort
}

// Begins tells whether the first bytes of a connection are, or may become, those of a header. No request of HTTP and no
// handshake of TLS begins so with six bytes or more.
func Begins(first []byte) bool {
	for _, sign := range []string{binarySign, textSign} {
		if n := min(len(first), len(sign)); n >= len(textSign) && string(first[:n]) == sign[:n] {
			return true
		}
	}
	return false
}

// Read reads a header and no byte behind it. Its error is ErrNoHeader, the reader's own, or says what is wrong with the header.
func Read(r io.Reader) (Header, error) {
	var first [len(binarySign)]byte // no header is shorter
	if _, err := io.ReadFull(r, first[:]); err != nil {
		return Header{}, fmt.Errorf("read a PROXY header: %w", err)
	}
	switch {
	case string(first[:]) == binarySign:
		return readBinary(r)
	case bytes.HasPrefix(first[:], []byte(textSign)):
		return readText(r, first[:])
	default:
		return Header{}, ErrNoHeader
	}
}

func readBinary(r io.Reader) (Header, error) {
	var fixed [fixedRest]byte
	if _, err := io.ReadFull(r, fixed[:]); err != nil {
		return Header{}, fmt.Errorf("read a PROXY header: %w", err)
	}
	command, length := fixed[0]&0xf, int(binary.BigEndian.Uint16(fixed[2:]))
	switch {
	case fixed[0]&0xf0 != version2:
		return Header{}, fmt.Errorf("a PROXY header has version %d", fixed[0]>>4)
	case command != commandLocal && command != commandProxy:
		return Header{}, fmt.Errorf("a PROXY header has command %d", command)
	case length > longestRest:
		return Header{}, fmt.Errorf("a PROXY header has %d bytes, more than %d", length, longestRest)
	}
	rest := make([]byte, length)
	if _, err := io.ReadFull(r, rest); err != nil {
		return Header{}, fmt.Errorf("read a PROXY header: %w", err)
	}
	if command == commandLocal {
		return Header{Local: true}, nil
	}
	switch fixed[1] {
	case familyTCP4:
		if length < size4 {
			return Header{}, fmt.Errorf("a PROXY header has %d bytes of IPv4 addresses", length)
		}
		return Header{Source: source(netip.AddrFrom4([4]byte(rest)), rest[8:])}, nil
	case familyTCP6:
		if length < size6 {
			return Header{}, fmt.Errorf("a PROXY header has %d bytes of IPv6 addresses", length)
		}
		return Header{Source: source(netip.AddrFrom16([16]byte(rest)), rest[32:])}, nil
	default: // a socket of the proxy's own machine, or of another kind
		return Header{}, nil
	}
}

func source(addr netip.Addr, port []byte) netip.AddrPort {
	return netip.AddrPortFrom(addr.Unmap(), binary.BigEndian.Uint16(port))
}

// readText reads the line byte by byte, since what follows it is the client's.
func readText(r io.Reader, first []byte) (Header, error) {
	line := make([]byte, len(first), longestText)
	copy(line, first)
	for !bytes.HasSuffix(line, []byte("\r\n")) {
		if len(line) == longestText {
			return Header{}, fmt.Errorf("a PROXY header has more than %d bytes", longestText)
		}
		if _, err := io.ReadFull(r, line[len(line):len(line)+1]); err != nil {
			return Header{}, fmt.Errorf("read a PROXY header: %w", err)
		}
		line = line[:len(line)+1]
	}
	words := strings.Split(string(line[:len(line)-2]), " ")
	switch kind := words[1]; {
	case kind == "UNKNOWN":
		return Header{}, nil
	case len(words) != 6 || kind != "TCP4" && kind != "TCP6":
		return Header{}, errors.New("a PROXY header names no addresses")
	}
	at, err := netip.ParseAddrPort("[" + words[2] + "]:" + words[4])
	if words[1] == "TCP4" {
		at, err = netip.ParseAddrPort(words[2] + ":" + words[4])
	}
	if err != nil || at.Addr().Is4() != (words[1] == "TCP4") || at.Addr().Zone() != "" {
		return Header{}, errors.New("a PROXY header names an address that is none")
	}
	return Header{Source: netip.AddrPortFrom(at.Addr().Unmap(), at.Port())}, nil
}
