package main

import "fmt"

const (
	// reservedFiles are kept from clients altogether: 64 connections to Redis, 64 idle ones to the archive's store, those
	// of the operator, and the worker's own to upstreams, receivers of webhooks and Temporal.
	reservedFiles = 256
	// filesPerPlace: a client's connection has one call at a time, and that one connection to an upstream or a store.
	filesPerPlace = 2
	// leastPlaces is what is worth a start; less is a limit that somebody set for something else.
	leastPlaces = 64
	// adminPlaces are those of admin.listen, which are the operator's whoever fills the others.
	adminPlaces = 64
	// mostFiles stands for a limit that is none. Memory ends long before.
	mostFiles = 1 << 24
)

// placesWithin is how many connections of clients a process holds open that may have so many files open.
func placesWithin(files int) (int, error) {
	places := (files - reservedFiles) / filesPerPlace
	if places < leastPlaces {
		return 0, fmt.Errorf("the limit of open files is %d: raise it to %d at least (ulimit -n)", files, reservedFiles+filesPerPlace*leastPlaces)
	}
	return places, nil
}

// openFiles is the limit of open files. Go raises the soft limit to the hard one at the start.
func (m *Main) openFiles() int {
	if m.OpenFiles > 0 {
		return m.OpenFiles
	}
	return systemFiles()
}
