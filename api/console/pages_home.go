package console

// homePages are the first page, for operators and for holders.
func homePages() []page { return []page{startPage()} }

// startPage leads to what there is for who has signed in.
func startPage() page {
	return page{name: "start", path: "", roles: everybody(), show: func(*View) (any, error) {
		return struct{}{}, nil
	}}
}
