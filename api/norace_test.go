//go:build !race

package api_test

// raceDetector tells whether the tests run under it.
const raceDetector = false
