package figures

// NewRow adds a row of rounds to an empty report.
func NewRow(floor, gateway []float64, want *Target) Row {
	r := new(Report)
	r.Add("load", "figure", "s", Series{floor, gateway}, want)
	return r.Rows[0]
}
