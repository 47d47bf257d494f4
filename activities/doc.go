// Package activities does the effects of a video task: it submits, polls, archives and cancels at upstreams. Package
// workflows decides when, and when again.
//
// Any activity may be run again after a crash at any line; each says what happens then. It must not import net/http
// formats, the api, or any vendor.
package activities
