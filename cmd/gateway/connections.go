package main

import "fmt"

const (
	// reservedFiles is the number of files for other uses than clients. These are 64 connections to Redis, 64 idle ones to the archive's
	// store, and those of the operator. The rest is for the worker: upstreams, receivers of webhooks and Temporal.
	reservedFiles = 256
	// filesPerConnection: a client's connection has one call at a time, and the call one connection to an upstream or a store.
	filesPerConnection = 2
	// leastConnections is the minimum for a start: a lower limit is surely a mistake.
	leastConnections = 64
	// adminConnections is the limit of admin.listen. They remain available to the operator when clients use all others.
	adminConnections = 64
	// unlimitedFiles represents the absence of a limit. The memory suffices for fewer.
	unlimitedFiles = 1 << 24
)

// connectionsWithin returns how many connections of clients fit within a limit of open files.
func connectionsWithin(files int) (int, error) {
	connections := (files - reservedFiles) / filesPerConnection
	if connections < leastConnections {
		return 0, fmt.Errorf("the limit of open files is %d: raise it to at least %d (ulimit -n)", files,
			reservedFiles+filesPerConnection*leastConnections)
	}
	return connections, nil
}

// openFiles returns the limit of open files. Go raises the soft limit to the hard one at the start.
func (m *Main) openFiles() int {
	if m.OpenFiles > 0 {
		return m.OpenFiles
	}
	return systemFiles()
}
