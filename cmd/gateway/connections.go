package main

import "fmt"

const (
	// reservedFiles are not for clients: 64 connections to Redis, 64 idle ones to the archive's store, those
	// of the operator, and the worker's own to upstreams, receivers of webhooks and Temporal.
	reservedFiles = 256
	// filesPerConnection: a client's connection has one call at a time, and that one connection to an upstream or a store.
	filesPerConnection = 2
	// leastConnections is what is worth a start: a smaller limit was meant for something else.
	leastConnections = 64
	// adminConnections are those of admin.listen. They stay free for the operator when clients have taken all others.
	adminConnections = 64
	// unlimitedFiles stands for a limit that is none. Memory ends long before.
	unlimitedFiles = 1 << 24
)

// connectionsWithin is how many connections of clients a process holds open that may have so many files open.
func connectionsWithin(files int) (int, error) {
	connections := (files - reservedFiles) / filesPerConnection
	if connections < leastConnections {
		return 0, fmt.Errorf("the limit of open files is %d: raise it to %d at least (ulimit -n)", files,
			reservedFiles+filesPerConnection*leastConnections)
	}
	return connections, nil
}

// openFiles is the limit of open files. Go raises the soft limit to the hard one at the start.
func (m *Main) openFiles() int {
	if m.OpenFiles > 0 {
		return m.OpenFiles
	}
	return systemFiles()
}
