package console

import "slices"

// holderHome is the path of a holder's first page, below Root.
const holderHome = ""

// allPages are the pages in the order of the navigation. Each area has a list in a file of its own.
func allPages() []page {
	return slices.Concat(homePages(), callPages(), taskPages(), tokenPages(), channelPages(), moneyPages(), auditPages(), yourPages())
}
