//go:build unix && !linux

package process

import "syscall"

func attributes(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
