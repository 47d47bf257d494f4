package process

import "syscall"

func attributes(orphaned syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: orphaned}
}
