// Package api is the gateway's HTTP server: it composes the formats of the contract over one edge, listens, drains, and
// serves health, the OpenAPI document and the page that renders it.
//
// It must not import a vendor, an activity or the Temporal SDK, and reads no file and no environment variable.
package api
