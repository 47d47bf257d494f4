package api

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// lastReceived returns when the system last received data of a connection, the zero time if the system does not report it. Data may wait in
// the socket of a suspended process. The source is tcpi_last_data_recv of TCP_INFO, in milliseconds (tcp(7)).
func lastReceived(conn *net.TCPConn) (at time.Time) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return time.Time{}
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			at = time.Now().Add(-time.Duration(info.Last_data_recv) * time.Millisecond)
		}
	})
	return at
}
