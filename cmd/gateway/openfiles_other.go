//go:build !unix

package main

// systemFiles returns unlimitedFiles: these systems have no such limit.
func systemFiles() int { return unlimitedFiles }
