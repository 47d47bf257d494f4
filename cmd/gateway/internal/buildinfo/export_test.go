package buildinfo

// ReadFrom and PartsOf are Read and Parts for the recorded build information of another binary.
var (
	ReadFrom = read
	PartsOf  = partsOf
)
