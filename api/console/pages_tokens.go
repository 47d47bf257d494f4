package console

// tokenPages are set-up, the tokens' and trying.
func tokenPages() []page {
	return []page{tokensPage(), newTokenPage(), tokenPage(), tryPage(), setupPage()}
}

// yourPages are the page of who has signed in, and finding.
func yourPages() []page { return []page{youPage(), findPage()} }
