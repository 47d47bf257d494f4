package console

// auditPages are those of the log of changes.
func auditPages() []page { return []page{auditPage()} }
