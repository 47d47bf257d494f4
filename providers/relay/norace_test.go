//go:build !race

package relay_test

// raceDetector reports whether the tests run under it: pools drop what they have at random there.
const raceDetector = false
