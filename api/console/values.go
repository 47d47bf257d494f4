package console

import (
	"fmt"
	"strconv"
	"strings"

	"modelrelay/providers/pricing"
)

// money formats an amount with two to six digits after the point.
func money(value any) string {
	var f float64
	switch a := value.(type) {
	case nil:
		return ""
	case float64:
		f = a
	case pricing.Money:
		f = amount(a)
	case *pricing.Money:
		if a == nil {
			return ""
		}
		f = amount(*a)
	case pricing.Decimal:
		f, _ = strconv.ParseFloat(string(a), 64) // a number
	default:
		return fmt.Sprint(value)
	}
	digits := 2
	for limit := 1.0; digits < 6 && f != 0 && f < limit && f > -limit; digits++ {
		limit /= 10
	}
	whole, rest, _ := strings.Cut(strconv.FormatFloat(f, 'f', digits, 64), ".")
	return group(whole) + "." + rest
}

// amount returns the money in units of the currency.
func amount(m pricing.Money) float64 { return float64(m) / 1e9 }

func group(whole string) string {
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return sign + whole
}

func number(n any) string { return group(fmt.Sprint(n)) }

// browserOf returns the browser with its version, and the system, of a user agent. For an unknown agent it returns the beginning.
func browserOf(agent string) string {
	name := cut(agent, 40)
	for _, known := range []struct{ mark, name string }{
		{"Edg/", "Edge"},
		{"OPR/", "Opera"},
		{"Firefox/", "Firefox"},
		{"Chrome/", "Chrome"},
		{"Version/", "Safari"},
	} {
		if _, rest, ok := strings.Cut(agent, known.mark); ok {
			version, _, _ := strings.Cut(rest, ".")
			name = known.name + " " + cut(version, 8)
			break
		}
	}
	for _, system := range []struct{ mark, name string }{
		{"Android", "Android"},
		{"iPhone", "iPhone"},
		{"iPad", "iPad"},
		{"Windows", "Windows"},
		{"Mac OS", "macOS"},
		{"Linux", "Linux"},
	} {
		if strings.Contains(agent, system.mark) {
			return name + " · " + system.name
		}
	}
	return name
}
