package testport

import (
	"net"
	"testing"
)

func TestAddress(t *testing.T) {
	t.Parallel()
	addr := Address(t)
	if mark, err := take(t.Context(), addr); err == nil {
		_ = mark.Close()
		t.Errorf("%s is given away twice", addr)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if mark, err := take(t.Context(), listener.Addr().String()); err == nil {
		_ = mark.Close()
		t.Errorf("%s is claimed although a process listens there", addr)
	}
}
