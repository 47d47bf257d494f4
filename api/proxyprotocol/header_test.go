package proxyprotocol_test

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"

	"modelrelay/api/proxyprotocol"
)

const sign = "\r\n\r\n\x00\r\nQUIT\n"

// inet4 and inet6 are addresses of both ends: 203.0.113.7 port 0x1234 to 10.0.0.1 port 443, and 2001:db8::7 to ::1.
const (
	inet4 = "\xcb\x00\x71\x07\x0a\x00\x00\x01\x12\x34\x01\xbb"
	inet6 = "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" + "\x12\x34\x01\xbb"
)

// TestRead: each header, however it arrives, says whom the connection comes from, and leaves what follows it unread.
func TestRead(t *testing.T) {
	t.Parallel()
	four, six := netip.MustParseAddrPort("203.0.113.7:4660"), netip.MustParseAddrPort("[2001:db8::7]:4660")
	for _, test := range []struct {
		name, header string
		want         proxyprotocol.Header
	}{
		{"version 1", "PROXY TCP4 203.0.113.7 10.0.0.1 4660 443\r\n", proxyprotocol.Header{Source: four}},
		{"version 1, IPv6", "PROXY TCP6 2001:db8::7 ::1 4660 443\r\n", proxyprotocol.Header{Source: six}},
		{"version 1, IPv4 in IPv6", "PROXY TCP6 ::ffff:203.0.113.7 ::1 4660 443\r\n", proxyprotocol.Header{Source: four}},
		{"version 1, longest", "PROXY UNKNOWN " + strings.Repeat("f", 107-16) + "\r\n", proxyprotocol.Header{}},
		{"version 1, nobody", "PROXY UNKNOWN\r\n", proxyprotocol.Header{}},
		{"version 2", sign + "\x21\x11\x00\x0c" + inet4, proxyprotocol.Header{Source: four}},
		{"version 2, IPv6", sign + "\x21\x21\x00\x24" + inet6, proxyprotocol.Header{Source: six}},
		{"version 2 with notes", sign + "\x21\x11\x00\x12" + inet4 + "\x04\x00\x03abc", proxyprotocol.Header{Source: four}},
		{"version 2, the proxy itself", sign + "\x20\x00\x00\x00", proxyprotocol.Header{Local: true}},
		{"version 2, the proxy itself, with addresses", sign + "\x20\x11\x00\x0c" + inet4, proxyprotocol.Header{Local: true}},
		{"version 2, nobody", sign + "\x21\x00\x00\x00", proxyprotocol.Header{}},
		{"version 2, a socket of the machine", sign + "\x21\x31\x00\xd8" + strings.Repeat("\x00", 216), proxyprotocol.Header{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for how, reader := range map[string]func(io.Reader) io.Reader{
				"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader,
			} {
				conn := strings.NewReader(test.header + "GET / HTTP/1.1\r\n")
				got, err := proxyprotocol.Read(reader(conn))
				if rest, _ := io.ReadAll(conn); err != nil || got != test.want || string(rest) != "GET / HTTP/1.1\r\n" {
					t.Errorf("%s: got %+v, %v and left %q; want %+v", how, got, err, rest, test.want)
				}
			}
			for n := range len(test.header) {
				if _, err := proxyprotocol.Read(strings.NewReader(test.header[:n])); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("%d bytes: got %v, want an early end", n, err)
				}
			}
			if !proxyprotocol.Begins([]byte(test.header)) || !proxyprotocol.Begins([]byte(test.header[:6])) {
				t.Error("it does not count as a header")
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]string{
		"no header":                  "GET / HTTP/1.1\r\n",
		"a handshake":                "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\x00\x00\x00",
		"version 1 too long":         "PROXY UNKNOWN " + strings.Repeat("f", 107) + "\r\n",
		"version 1, no addresses":    "PROXY TCP4\r\n  ",
		"version 1, another family":  "PROXY TCP4 2001:db8::7 ::1 1 2\r\n",
		"version 1, an IPv4 as IPv6": "PROXY TCP6 203.0.113.7 10.0.0.1 1 2\r\n",
		"version 1, a zone":          "PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n",
		"version 1, a name":          "PROXY TCP4 localhost 10.0.0.1 1 2\r\n",
		"version 1, a port too high": "PROXY TCP4 203.0.113.7 10.0.0.1 65536 2\r\n",
		"version 1, two spaces":      "PROXY  TCP4 203.0.113.7 10.0.0.1 1 2\r\n",
		"version 1, UDP":             "PROXY UDP4 203.0.113.7 10.0.0.1 1 2\r\n",
		"version 3":                  sign + "\x31\x11\x00\x0c" + inet4,
		"an unknown command":         sign + "\x22\x11\x00\x0c" + inet4,
		"addresses too short":        sign + "\x21\x11\x00\x0b" + inet4,
		"IPv6 addresses too short":   sign + "\x21\x21\x00\x0c" + inet4,
		"too long":                   sign + "\x21\x11\xff\xff" + strings.Repeat("\x00", 1<<16),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := proxyprotocol.Read(strings.NewReader(header))
			if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	for _, first := range []string{"", "P", "PROXY", "POST / HTTP", "\r\n\r\n", "\r\n\r\n\x00x", "GET / HTTP/1.1", "PRI * HTTP/2.0\r\n"} {
		if proxyprotocol.Begins([]byte(first)) {
			t.Errorf("%q counts as a header", first)
		}
	}
}

// FuzzRead: whatever comes, no more is read than a header may have, and an address is one.
func FuzzRead(f *testing.F) {
	f.Add([]byte("PROXY TCP4 203.0.113.7 10.0.0.1 4660 443\r\nGET"))
	f.Add([]byte(sign + "\x21\x21\x00\x24" + inet6))
	f.Add([]byte(sign + "\x21\x11\xff\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		conn := bytes.NewReader(text)
		header, err := proxyprotocol.Read(conn)
		if read := len(text) - conn.Len(); read > 16+4096 {
			t.Errorf("%d bytes were read", read)
		}
		if err != nil && header != (proxyprotocol.Header{}) {
			t.Errorf("%+v beside %v", header, err)
		}
		if header.Source.IsValid() && (header.Source.Addr().Is4In6() || header.Source.Addr().Zone() != "") {
			t.Errorf("%v", header.Source)
		}
	})
}
