package tasks

// Most is how many times, each from and to, there are at once at most.
func Most(times [][2]int64) int {
	spans := make([]span, 0, len(times))
	for _, t := range times {
		spans = append(spans, span{t[0], t[1]})
	}
	return most(spans)
}
