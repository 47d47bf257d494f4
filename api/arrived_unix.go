//go:build unix

package api

import (
	"net"
	"syscall"
)

// readArrived reads what the system has of a connection, 0 bytes where that is nothing. Whatever else there is to say, the
// next read that waits says.
func readArrived(conn *net.TCPConn, p []byte) int {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	got := 0
	_ = raw.Read(func(fd uintptr) bool {
		n, _ := syscall.Read(int(fd), p)
		got = max(0, n)
		return true // it does not wait
	})
	return got
}
