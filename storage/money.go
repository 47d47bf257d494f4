package storage

import "math"

const (
	// moneyUnit is one unit of the operator's currency. All amounts of this package are whole billionths of it, so that the
	// price of one model token is a whole number.
	moneyUnit = 1_000_000_000
	// maxMoney is the largest amount: what a script's numbers hold exactly, nine million units.
	maxMoney = 1 << 53
)

// budget is the token's budget in billionths; 0: none.
func (t *Token) budget() int64 {
	return bounded(int64(math.Round(min(t.Budget*moneyUnit, maxMoney))))
}

// bounded keeps an amount within what scripts can count.
func bounded(amount int64) int64 { return min(max(0, amount), maxMoney) }
