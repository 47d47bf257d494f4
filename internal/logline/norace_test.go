//go:build !race

package logline_test

// raceDetector tells whether the tests run under it.
const raceDetector = false
