package storage

import "math"

const (
	// moneyUnit is one unit of the operator's currency. All amounts of storage are whole billionths of it, so that the price of
	// one model token is a whole number.
	moneyUnit = 1_000_000_000
	// maxMoney is the largest amount: what a script's numbers hold exactly, nine million units.
	maxMoney = 1 << 53
)

// Billionths is an amount in units of the currency as storage counts it.
func Billionths(units float64) int64 {
	return BoundAmount(int64(math.Round(min(units*moneyUnit, maxMoney))))
}

// BoundAmount keeps an amount within what scripts can count.
func BoundAmount(amount int64) int64 { return min(max(0, amount), maxMoney) }

// Allowance is what one token may take, as admission counts it; 0 is no limit. Calls of equal allowances share one window, so
// new limits are not confused with the old ones. It stands here since the parts that keep tokens and that limit them do not
// know each other.
type Allowance struct {
	Token             string // stable id
	RequestsPerMinute int
	TokensPerMinute   int
	Concurrency       int   // calls in flight
	Budget            int64 // money in billionths
}
