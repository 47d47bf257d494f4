// Package translatetest checks answers that translations write, one dialect each, for tests alone.
package translatetest
