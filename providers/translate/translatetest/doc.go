// Package translatetest checks answers that translations write, one dialect each, only for tests.
package translatetest
