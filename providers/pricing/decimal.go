package pricing

import (
	"bytes"
	"math/big"
	"strings"
)

// Decimal is an exact decimal number, "" for none. In JSON it is a number.
type Decimal string

// MarshalJSON writes the number unchanged; null for none.
func (d Decimal) MarshalJSON() ([]byte, error) {
	if d == "" {
		return []byte("null"), nil
	}
	return []byte(d), nil
}

// UnmarshalJSON reads a number or a text, without unnecessary zeros; null is none.
func (d *Decimal) UnmarshalJSON(text []byte) error {
	text = bytes.Trim(text, `"`)
	if *d = ""; string(text) == "null" {
		return nil
	}
	amount, err := decimal(string(text))
	if err != nil {
		return err
	}
	*d = shortest(amount)
	return nil
}

// maxDigits bounds the digits after the point. Prices are in units of the currency for a million tokens.
const maxDigits = 15

// Per returns the rate for a number of pieces, as ParseRate reads it; "" for nil.
func (r *Rate) Per(pieces int64) Decimal {
	if r == nil {
		return ""
	}
	amount := new(big.Rat).SetFrac(new(big.Int).SetUint64(r.num), new(big.Int).SetUint64(r.den))
	amount.Mul(amount, big.NewRat(pieces, moneyUnit))
	return shortest(amount)
}

func shortest(amount *big.Rat) Decimal {
	text := amount.FloatString(maxDigits)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return Decimal(text)
}
