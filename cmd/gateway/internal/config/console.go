package config

import (
	"net/url"
	"strings"
	"time"
)

const (
	// longestIdle is the maximum duration of a session: a longer idle time has no effect.
	longestIdle = 12 * time.Hour
	// maxCurrency is longer than any usual unit after an amount, in bytes.
	maxCurrency = 12
)

func checkConsole(v *validator, c Config) {
	v.listener("console.listen", c.Console.Listen, "is the address of another listener; leave it empty to have /console at listen", c.Listen,
		c.Metrics.Listen, c.Admin.Listen)
	if c.Console.URL != "" {
		if address, ok := v.httpURL("console.url", c.Console.URL); ok &&
			(strings.Trim(address.Path, "/") != "" || address.RawQuery != "" || address.User != nil) {
			v.add("console.url", "must be an address without a path and a query, such as https://gateway.example.com")
		}
	}
	if c.Console.Idle > longestIdle {
		v.add("console.idle", "is longer than %s, the maximum duration of a session", formatDuration(longestIdle))
	}
	if c.Console.TraceURL != "" {
		filled := strings.ReplaceAll(c.Console.TraceURL, "{trace_id}", "0")
		if _, ok := v.httpURL("console.trace_url", filled); ok && filled == c.Console.TraceURL {
			v.add("console.trace_url", "must contain {trace_id} in place of the trace id")
		}
	}
	if len(c.Currency) > maxCurrency || strings.ContainsFunc(c.Currency, func(r rune) bool { return r < ' ' }) {
		v.add("currency", "must be a short unit such as USD")
	}
}

// ConsoleURL returns the address at which people open the console; nil: only loopback.
func (c Config) ConsoleURL() *url.URL {
	if c.Console.URL == "" {
		return nil
	}
	address, _ := url.Parse(c.Console.URL) // Validate has checked it
	return address
}
