package console

// holderHome is the path of a holder's first page, below Root.
const holderHome = ""

// allPages are the pages in the order of the navigation.
func allPages() []page {
	return []page{
		startPage(),
		callsPage(), callPage(),
		tasksPage(), taskPage(),
		tokensPage(), newTokenPage(), tokenPage(), tryPage(), setupPage(),
		channelsPage(), channelPage(), modelsPage(),
		usagePage(),
		auditPage(),
		youPage(), findPage(),
	}
}
