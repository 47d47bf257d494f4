package console

// callPages are those of the log of calls.
func callPages() []page { return nil }
