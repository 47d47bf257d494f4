//go:build unix && !linux

package process

import "syscall"

func attributes(_ syscall.Signal, as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: as}
}
