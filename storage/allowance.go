package storage

import "math"

const (
	// moneyUnit is one unit of the operator's currency. Storage counts money in whole billionths, so that a token's price is a whole number.
	moneyUnit = 1_000_000_000
	// maxMoney is the largest amount that a Lua number holds exactly: nine million units.
	maxMoney = 1 << 53
)

// Billionths converts units of the currency into billionths.
func Billionths(units float64) int64 {
	return BoundAmount(int64(math.Round(min(units*moneyUnit, maxMoney))))
}

// BoundAmount limits an amount to 0 … maxMoney.
func BoundAmount(amount int64) int64 { return min(max(0, amount), maxMoney) }

// Allowance holds the limits of one token for admission; 0: no limit. Calls of equal allowances share one window, so new limits are not
// confused with the old ones. Packages tokens and limits share it, which do not import each other.
type Allowance struct {
	Token             string // stable id
	RequestsPerMinute int
	TokensPerMinute   int
	Concurrency       int   // calls in flight
	Budget            int64 // money in billionths
}
