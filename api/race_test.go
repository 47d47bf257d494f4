//go:build race

package api_test

// raceDetector reports whether the tests run under it.
const raceDetector = true
