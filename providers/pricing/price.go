// Package pricing computes the cost of calls and tasks: money in whole billionths, exact rates, and the operator's list of prices by model.
//
// Of the product it imports only providers, for the usage.
package pricing

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strings"
	"sync/atomic"
	"time"

	"modelrelay/providers"
)

// Money is an amount in billionths of the operator's only currency, at most nine thousand million units.
type Money int64

const moneyUnit = 1_000_000_000

// ErrMoney reports a text that is not an amount that Money can hold exactly.
var ErrMoney = errors.New("want a decimal amount, not negative, with at most 9 digits behind the point")

// ParseMoney reads a decimal amount: "2.5", "0.0004", "1e-3".
func ParseMoney(text string) (Money, error) {
	amount, err := decimal(text)
	if err != nil {
		return 0, err
	}
	amount.Mul(amount, big.NewRat(moneyUnit, 1))
	if !amount.IsInt() || !amount.Num().IsInt64() {
		return 0, ErrMoney
	}
	return Money(amount.Num().Int64()), nil
}

// decimal reads a decimal number of at least 0. It bounds the exponent, so that a short text cannot become a long number.
func decimal(text string) (*big.Rat, error) {
	mantissa, exponent, scaled := strings.Cut(strings.ToLower(text), "e")
	if mantissa == "" || len(text) > 40 || strings.Trim(mantissa, "0123456789.") != "" || scaled && (len(exponent) == 0 || len(exponent) > 3) {
		return nil, ErrMoney
	}
	number, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, ErrMoney
	}
	return number, nil
}

// String writes the amount as a decimal without unnecessary zeros: "0.0125".
func (m Money) String() string { return string(shortest(big.NewRat(int64(m), moneyUnit))) }

// MarshalText writes the amount as String does.
func (m Money) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// MarshalJSON writes the amount as an exact number of units.
func (m Money) MarshalJSON() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalJSON reads a number or a text.
func (m *Money) UnmarshalJSON(text []byte) error {
	return m.UnmarshalText(bytes.Trim(text, `"`))
}

// UnmarshalText reads what ParseMoney reads.
func (m *Money) UnmarshalText(text []byte) error {
	amount, err := ParseMoney(string(text))
	if err != nil {
		return err
	}
	*m = amount
	return nil
}

// Price is what the operator charges for one model. A nil rate is not charged, except Cached.
type Price struct {
	// Input, Cached and Output are per token. If Cached is nil, cached input costs as much as Input.
	Input, Cached, Output *Rate
	// Request is per call or task, Image per image made, AudioSecond per second of audio, input or output.
	Request, Image, AudioSecond *Rate
	// VideoSecond is per second of video made and Video per video, if no tier matches.
	VideoSecond, Video *Rate
	// Tiers are prices of videos by their properties. The first that matches replaces VideoSecond and Video.
	Tiers []Tier
}

// Rate is the exact price of one piece, in billionths of the currency, as a fraction. It is immutable.
type Rate struct{ num, den uint64 }

// mostPieces is the resolution of a rate's piece: lengths are in milliseconds.
const mostPieces = 1000

// ParseRate reads a decimal price for per pieces: "2.5" for 1000000 tokens.
func ParseRate(text string, per int64) (*Rate, error) {
	amount, err := decimal(text)
	switch {
	case err != nil:
		return nil, err
	case per <= 0:
		return nil, fmt.Errorf("a price is for at least one, not for %d", per)
	}
	amount.Mul(amount, big.NewRat(moneyUnit, per))
	if !amount.Num().IsUint64() || !amount.Denom().IsUint64() || amount.Denom().Uint64() > math.MaxUint64/mostPieces {
		return nil, ErrMoney
	}
	return &Rate{num: amount.Num().Uint64(), den: amount.Denom().Uint64()}, nil
}

// Measure is the quantity that a call or task is charged for.
type Measure struct {
	Requests int64
	Usage    providers.Usage
	// Video is the length of the videos made. Lengths ignore fractions of a millisecond.
	Video time.Duration
	// Videos is how many videos were made. The other fields are their properties.
	Videos     int64
	Resolution string // as providers.ResolutionWord writes it; "" if unknown
	Sound      Sound
}

// Cost returns the price of a measure: each counter is rounded up to the next billionth. It is at most the maximum of Money. If
// output tokens have a price and were counted, they replace the length and the number of videos.
func (p Price) Cost(m Measure) Money {
	second, video := p.tier(m)
	if p.Output != nil && m.Usage.Output > 0 {
		second, video = nil, nil
	}
	return p.cost(m, second, video)
}

func (p Price) cost(m Measure, second, video *Rate) Money {
	cached := p.Cached
	if cached == nil {
		cached = p.Input
	}
	input := max(0, m.Usage.Input-m.Usage.Cached)
	var total Money
	for _, item := range [...]struct {
		rate  *Rate
		count int64
		of    uint64 // pieces of one unit of the price
	}{
		{p.Request, m.Requests, 1},
		{p.Input, input, 1},
		{cached, m.Usage.Cached, 1},
		{p.Output, m.Usage.Output, 1},
		{p.Image, m.Usage.Images, 1},
		{p.AudioSecond, m.Usage.Audio.Milliseconds(), mostPieces},
		{second, m.Video.Milliseconds(), mostPieces},
		{video, m.Videos, 1},
	} {
		total = total.plus(item.rate.of(item.count, item.of))
	}
	return total
}

// of returns the price of count pieces. per pieces make one unit of the price.
func (r *Rate) of(count int64, per uint64) Money {
	if r == nil || count <= 0 {
		return 0
	}
	high, low := bits.Mul64(r.num, uint64(count))
	pieces := r.den * per
	if high >= pieces {
		return math.MaxInt64
	}
	whole, rest := bits.Div64(high, low, pieces)
	if rest > 0 && whole < math.MaxInt64 {
		whole++
	}
	return Money(min(whole, math.MaxInt64))
}

// plus adds amounts of at least 0 and stops at the maximum of Money.
func (m Money) plus(other Money) Money {
	if m > math.MaxInt64-other {
		return math.MaxInt64
	}
	return m + other
}

// List is the operator's price list by public model name. A nil List is empty. It is safe for concurrent use.
type List struct {
	list atomic.Pointer[map[string]Price]
}

// NewList returns a List. The caller must not change the map afterwards.
func NewList(list map[string]Price) *List {
	l := new(List)
	l.Load(list)
	return l
}

// Load replaces the list. It applies to calls and tasks that end from now on.
func (l *List) Load(list map[string]Price) { l.list.Store(&list) }

// Of returns the price of a model. If the list lacks the model, it reports false and returns a price that charges nothing.
func (l *List) Of(model string) (Price, bool) {
	if l == nil {
		return Price{}, false
	}
	price, ok := (*l.list.Load())[model]
	return price, ok
}
