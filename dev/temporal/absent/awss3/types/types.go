// Package types has the types of S3 that Temporal's server names.
package types

// CommonPrefix is a folder of a list.
type CommonPrefix struct{ Prefix *string }

// Object is an object of a list.
type Object struct{ Key *string }

// NoSuchBucket means that there is no such bucket.
type NoSuchBucket struct{}

func (*NoSuchBucket) Error() string { return "no such bucket" }

// NoSuchKey means that there is no such object.
type NoSuchKey struct{}

func (*NoSuchKey) Error() string { return "no such key" }
