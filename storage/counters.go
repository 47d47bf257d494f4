package storage

import (
	"net/url"
	"strconv"
	"strings"
)

// EachCounter calls each for the fields of a hash of sums: "<escaped name> … <counter>" with the given number of names. It skips other
// fields, and values that are not numbers.
func EachCounter(fields map[string]string, names int, each func(of []string, counter string, n int64)) {
	for field, text := range fields {
		parts := strings.Split(field, " ")
		n, err := strconv.ParseInt(text, 10, 64)
		if len(parts) != names+1 {
			continue
		}
		for i := 0; i < names && err == nil; i++ {
			parts[i], err = url.QueryUnescape(parts[i])
		}
		if err == nil {
			each(parts[:names], parts[names], n)
		}
	}
}
