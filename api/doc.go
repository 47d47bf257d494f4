// Package api is the gateway's HTTP edge: it adapts the client formats of the contract to relayed calls and video
// tasks. A handler parses, makes one call and renders.
//
// It must not import a vendor, an activity or the Temporal SDK, and reads no file and no environment.
package api
