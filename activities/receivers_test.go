package activities_test

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"modelrelay/activities"
	"modelrelay/providers/secret"
	"modelrelay/storage/tokens"
)

func TestCheckReceiver(t *testing.T) {
	t.Parallel()
	const (
		shape   = "must be http://host or https://host"
		special = "webhooks.allow_private_networks"
	)
	for address, want := range map[string]string{
		"https://client.example/hook?key=1":                   "",
		"http://client.example:8443/":                         "",
		"https://8.8.8.8/":                                    "",
		"https://[2606:4700::1111]/":                          "",
		"":                                                    shape,
		"client.example/hook":                                 shape,
		"ftp://client.example/":                               shape,
		"file:///etc/passwd":                                  shape,
		"https:///hook":                                       shape,
		"https://:443/hook":                                   shape,
		"https://client.example:port/":                        shape,
		"https://client.example\n/":                           shape,
		"https://client.example:0/":                           "must have a port",
		"https://client.example:70000/":                       "must have a port",
		"https://user:pass@client.example/":                   "must not contain a user or password",
		"https://client.example/#part":                        "must not contain a fragment",
		"https://client.example/" + strings.Repeat("a", 2048): "is longer than 2048 bytes",
		"http://localhost/":                                   special,
		"http://LOCALHOST.:8080/":                             special,
		"http://a.localhost/":                                 special,
		"http://127.0.0.1/":                                   special,
		"http://127.1.2.3:80/":                                special,
		"http://0.0.0.0/":                                     special,
		"http://10.0.0.1/":                                    special,
		"http://172.16.0.1/":                                  special,
		"http://172.31.255.255/":                              special,
		"http://192.168.1.1/":                                 special,
		"http://100.64.0.1/":                                  special,
		"http://100.100.100.200/":                             special, // Alibaba's metadata
		"http://169.254.169.254/latest/meta-data":             special,
		"http://168.63.129.16/":                               special, // Azure's host
		"http://192.0.0.192/":                                 special, // Oracle's metadata
		"http://224.0.0.1/":                                   special,
		"http://255.255.255.255/":                             special,
		"http://198.18.0.1/":                                  special,
		"http://[::1]/":                                       special,
		"http://[::]/":                                        special,
		"http://[fe80::1]/":                                   special,
		"http://[fe80::1%25eth0]/":                            special,
		"http://[2606:4700::1111%25eth0]/":                    special,
		"http://[fc00::1]/":                                   special,
		"http://[fd00:ec2::254]/":                             special, // Amazon's metadata
		"http://[ff02::1]/":                                   special,
		"http://[::ffff:127.0.0.1]/":                          special, // IPv4-mapped
		"http://[::ffff:8.8.8.8]/":                            special,
		"http://[::127.0.0.1]/":                               special, // IPv4-compatible
		"http://[64:ff9b::7f00:1]/":                           special, // NAT64
		"http://[64:ff9b:1::a00:1]/":                          special, // local-use NAT64
		"http://[2002:7f00:1::]/":                             special, // 6to4
		"http://[2001:0:7f00:1::]/":                           special, // Teredo
		"http://[2001:db8::1]/":                               special,
	} {
		err := activities.CheckReceiver(address, false)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60s: got %v, want %q", address, err, want)
		}
		if err := activities.CheckReceiver(address, true); (err == nil) != (want == "" || want == special) {
			t.Errorf("%.60s, private networks allowed: %v", address, err)
		}
	}
}

// FuzzCheckReceiver: CheckReceiver accepts no address with an IP address outside of the public internet.
func FuzzCheckReceiver(f *testing.F) {
	for _, seed := range []string{
		"https://client.example/", "http://127.0.0.1", "http://[::ffff:10.0.0.1]:80/x", "http://[64:ff9b::7f00:1]/", "http://2130706433/",
		"http://0x7f.1/", "http://127.0.0.1.:80/", "http://[fe80::1%25lo]/", "https://a@b@127.0.0.1/", "http://１２７.0.0.1/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		if activities.CheckReceiver(address, false) != nil {
			return
		}
		u, err := url.Parse(address)
		if err != nil || u.User != nil || u.Hostname() == "" {
			t.Fatalf("let through: %q", address)
		}
		ip, err := netip.ParseAddr(u.Hostname())
		if err != nil {
			return // a name is judged when it is dialled
		}
		ip = ip.WithZone("").Unmap()
		if !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.Is6() && ip.As16()[0]>>5 != 1 {
			t.Errorf("let through: %q", address)
		}
	})
}

// TestDeliverFollowsNoRedirect: a redirect is a failure, wherever it leads.
func TestDeliverFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	inner := newReceiver(t, status(http.StatusOK))
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		hook := newReceiver(t, func(w http.ResponseWriter, _ int) {
			w.Header().Set("Location", inner.URL)
			w.WriteHeader(code)
		})
		r := newNotifier(t, tokens.Webhook{URL: hook.URL, Secrets: []secret.Text{tokens.NewWebhookSecret()}})
		_, err := do[activities.Delivery](t, r, r.acts.Deliverer.Deliver, deliver())
		if record, retried, _ := fault(t, err); !retried || record.Status != code {
			t.Errorf("%d: %+v", code, record)
		}
	}
	if n := len(inner.requests()); n != 0 {
		t.Errorf("%d requests were redirected", n)
	}
}

// TestDeliverJudgesTheAddressDialled: a name is harmless by its text and stands for an address of the inside when it
// is looked up for the delivery. Where private networks are allowed the same name leads to the receiver.
func TestDeliverJudgesTheAddressDialled(t *testing.T) {
	t.Parallel()
	hook := newReceiver(t, status(http.StatusOK))
	_, port, err := net.SplitHostPort(hook.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{
		"127.0.0.1", "10.1.2.3", "169.254.169.254", "100.64.1.1", "0.0.0.0", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::",
		"fd00:ec2::254", "fe80::1",
	} {
		resolver := answering(t, net.ParseIP(address))
		for _, allowed := range []bool{false, true} {
			if allowed && address != "127.0.0.1" {
				continue // no receiver listens there
			}
			r := newNotifier(t, tokens.Webhook{URL: "http://rebound.example:" + port, Secrets: []secret.Text{tokens.NewWebhookSecret()}})
			r.acts.Deliverer.Receivers = activities.NewReceivers(activities.ReceiversOptions{AllowPrivate: allowed, Resolver: resolver})
			t.Cleanup(r.acts.Deliverer.Receivers.Close)
			d, err := do[activities.Delivery](t, r, r.acts.Deliverer.Deliver, deliver())
			if allowed {
				if err != nil || !d.Delivered {
					t.Errorf("%s, private networks allowed: %+v, %v", address, d, err)
				}
				continue
			}
			record, retried, _ := fault(t, err)
			if !retried || !strings.Contains(record.Message, "allow_private_networks") || strings.Contains(record.Message, address) {
				t.Errorf("%s: %+v", address, record)
			}
		}
	}
	if n := len(hook.requests()); n != 1 {
		t.Errorf("%d requests, want the one that was allowed", n)
	}
}

// answering is a resolver at a server of the test that returns one address for every name.
func answering(t *testing.T, ip net.IP) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			var q dnsmessage.Message
			if err := q.Unpack(buf[:n]); err != nil || len(q.Questions) != 1 {
				continue
			}
			a := dnsmessage.Message{Header: dnsmessage.Header{ID: q.ID, Response: true, RecursionAvailable: true}, Questions: q.Questions}
			head := dnsmessage.ResourceHeader{Name: q.Questions[0].Name, Class: dnsmessage.ClassINET, TTL: 0}
			four := ip.To4()
			switch kind := q.Questions[0].Type; {
			case kind == dnsmessage.TypeA && four != nil:
				a.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.AResource{A: [4]byte(four)}}}
			case kind == dnsmessage.TypeAAAA && four == nil:
				a.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.AAAAResource{AAAA: [16]byte(ip)}}}
			}
			raw, err := a.Pack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = server.WriteTo(raw, from)
		}
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// TestDeliverReadsLittle: a receiver that never ends its answer holds nothing up.
func TestDeliverReadsLittle(t *testing.T) {
	t.Parallel()
	hook := newReceiver(t, func(w http.ResponseWriter, _ int) {
		chunk := make([]byte, 32<<10)
		for range 1 << 10 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	r := newNotifier(t, tokens.Webhook{URL: hook.URL, Secrets: []secret.Text{tokens.NewWebhookSecret()}})
	if d, err := do[activities.Delivery](t, r, r.acts.Deliverer.Deliver, deliver()); err != nil || !d.Delivered {
		t.Errorf("got %+v, %v", d, err)
	}
}
