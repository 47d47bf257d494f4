package console

// moneyPages are those of usage and what is unsettled.
func moneyPages() []page { return []page{usagePage()} }
