package process

import "syscall"

// attributes are those of a child; as is the user it runs as, nil for this process's own.
func attributes(orphaned syscall.Signal, as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: orphaned, Credential: as}
}
