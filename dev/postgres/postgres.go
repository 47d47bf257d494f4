// Package postgres runs the machine's own PostgreSQL on the loopback address, on a folder of its own. It imports nothing of the
// rest of the stack.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

const (
	// User owns all databases. PostgreSQL is served on loopback only and asks for no password.
	User = "temporal"
	// connections is what the four roles of a Temporal server may hold at once, five processes of up to 40.
	connections = 250
	// account is the user that PostgreSQL runs as where this process is root, which it refuses.
	account = "postgres"
	// Debian keeps the server's programs of each version in a folder of its own.
	debian = "/usr/lib/postgresql/*/bin"
)

// ErrMissing says that the machine has no PostgreSQL.
var ErrMissing = errors.New("PostgreSQL is not installed")

// Server is a PostgreSQL that may be started on a folder.
type Server struct {
	programs string // their folder
	data     string
	addr     netip.AddrPort
	as       *syscall.Credential // nil: as this process
}

// Programs returns the folder of the machine's newest PostgreSQL server, or ErrMissing.
func Programs() (string, error) {
	folders, err := filepath.Glob(debian)
	if err != nil {
		return "", err
	}
	slices.SortFunc(folders, func(a, b string) int { return version(b) - version(a) })
	for _, folder := range folders {
		if _, err := exec.LookPath(filepath.Join(folder, "initdb")); err == nil {
			return folder, nil
		}
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", ErrMissing
	}
	return filepath.Dir(path), nil
}

// version is the one in a folder's name, 0 for none.
func version(folder string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(folder))) // 0 for a name that is not a number
	return n
}

// New prepares a server at addr whose state is below the folder data, an absolute path, which it first creates where it is
// missing. A folder that a crash left half made is made anew.
func New(ctx context.Context, data string, addr netip.AddrPort) (*Server, error) {
	programs, err := Programs()
	if err != nil {
		return nil, err
	}
	s := &Server{programs: programs, data: filepath.Join(data, "cluster"), addr: addr}
	if os.Geteuid() == 0 {
		if s.as, err = s.owner(data); err != nil {
			return nil, err
		}
	}
	if _, err := os.Stat(s.data); err == nil {
		return s, nil
	} else if !os.IsNotExist(err) {
		return nil, fmt.Errorf("look for the database: %w", err)
	}
	if err := s.create(ctx, data); err != nil {
		return nil, err
	}
	return s, nil
}

// owner gives the folder data to the user that PostgreSQL runs as.
func (s *Server) owner(data string) (*syscall.Credential, error) {
	who, err := user.Lookup(account)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root: %w", err)
	}
	uid, err := strconv.ParseUint(who.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(who.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("create the folder of the database: %w", err)
	}
	if err := os.Chown(data, int(uid), int(gid)); err != nil {
		return nil, fmt.Errorf("give the folder of the database to %s: %w", account, err)
	}
	const enter = 0o001
	for dir := filepath.Dir(data); ; dir = filepath.Dir(dir) {
		about, err := os.Stat(dir)
		if err != nil {
			return nil, err
		}
		if about.Mode().Perm()&enter == 0 {
			return nil, fmt.Errorf("PostgreSQL runs as the user %s, which may not enter %s: choose another folder, or permit it by chmod o+x %s", account,
				dir, dir)
		}
		if dir == filepath.Dir(dir) {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
}

// create makes the database under another name and renames it when it is whole.
func (s *Server) create(ctx context.Context, data string) error {
	fresh := s.data + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("remove an unfinished database: %w", err)
	}
	// --no-sync: what a crash of the machine spoils is made anew.
	cmd := exec.CommandContext(ctx, filepath.Join(s.programs, "initdb"), "--pgdata", fresh, "--username", User, "--auth", "trust", //nolint:gosec // the machine's own program
		"--encoding", "UTF8", "--locale", "C", "--no-sync")
	s.own(cmd, data)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("create the database: %w\n%s", err, out)
	}
	if err := os.Rename(fresh, s.data); err != nil {
		return fmt.Errorf("put the database in place: %w", err)
	}
	return nil
}

// own makes the command run as the owner of the data, in a folder it may enter.
func (s *Server) own(cmd *exec.Cmd, dir string) {
	cmd.Dir = dir
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	if s.as != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	}
}

// Command is the server's process. It ends in order at SIGINT; killed at any moment, it has lost nothing that it committed.
func (s *Server) Command() *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.programs, "postgres"), "-D", s.data, //nolint:gosec,noctx // its starter ends it
		"-c", "listen_addresses="+s.addr.Addr().String(), "-c", "port="+strconv.Itoa(int(s.addr.Port())),
		"-c", "unix_socket_directories=", "-c", "max_connections="+strconv.Itoa(connections),
		"-c", "log_min_messages=fatal", "-c", "log_line_prefix=postgres ")
	s.own(cmd, s.data)
	cmd.Stderr = os.Stderr
	return cmd
}

// Addr is where it listens.
func (s *Server) Addr() string { return s.addr.String() }

// URL is how to reach one of its databases.
func URL(addr, database string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", User, addr, database)
}

// Ready fails until the server answers.
func (s *Server) Ready(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, URL(s.Addr(), "postgres"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// Running is the address of the server that runs on the state below the folder data.
func Running(data string) (string, error) {
	text, err := os.ReadFile(filepath.Join(data, "cluster", "postmaster.pid")) //nolint:gosec // a name of ours in our folder
	if err != nil {
		return "", fmt.Errorf("find PostgreSQL: %w", err)
	}
	const port, host = 3, 5 // lines of the file, from 0
	lines := strings.Split(string(text), "\n")
	if len(lines) <= host {
		return "", errors.New("find PostgreSQL: it is still starting")
	}
	return net.JoinHostPort(lines[host], lines[port]), nil
}
