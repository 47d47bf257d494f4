package chat

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// VectorOf returns a vector of length one that depends on the text alone.
func VectorOf(text string, dimensions int) []float32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))                  // never fails
	source := rand.New(rand.NewPCG(h.Sum64(), 1)) //nolint:gosec // the same in every run is what is wanted
	v := make([]float32, dimensions)
	var sum float64
	for i := range v {
		v[i] = float32(source.Float64()*2 - 1)
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(sum))
	}
	return v
}
