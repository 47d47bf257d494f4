// Package upstream fakes the vendors.
package upstream
