package providers

import "regexp"

// query finds the query string of an address in a text.
var query = regexp.MustCompile(`(://[^\s"'<>?]*)\?[^\s"'<>]*`)

// Words takes out of an upstream's words what must be neither shown nor kept: the query string of every address. An
// upstream that could not fetch an input repeats the client's link, signature and all.
func Words(text string) string { return query.ReplaceAllString(text, "${1}?…") }
