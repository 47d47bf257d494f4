package providers

import "sync/atomic"

// Prices is the operator's list, by public model name. A nil one is empty. Safe for concurrent use.
type Prices struct {
	list atomic.Pointer[map[string]Price]
}

// NewPrices makes a list, which the caller does not change afterwards.
func NewPrices(list map[string]Price) *Prices {
	p := new(Prices)
	p.Load(list)
	return p
}

// Load replaces the list. Calls and tasks that end from now on cost what it says.
func (p *Prices) Load(list map[string]Price) { p.list.Store(&list) }

// Of returns the price of a model; false, and one that charges nothing, where the list lacks it.
func (p *Prices) Of(model string) (Price, bool) {
	if p == nil {
		return Price{}, false
	}
	price, ok := (*p.list.Load())[model]
	return price, ok
}
