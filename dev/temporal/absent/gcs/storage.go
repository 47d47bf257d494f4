// Package storage has the client of Google Cloud Storage that Temporal's server names. It cannot be made: NewClient returns an error,
// so the server reaches none of the other methods.
package storage

import (
	"context"
	"errors"

	"google.golang.org/api/iterator"
	"google.golang.org/api/option"
)

// ScopeFullControl is the right that the server requests.
const ScopeFullControl = "https://www.googleapis.com/auth/devstorage.full_control"

var errAbsent = errors.New("the development server has no client of Google Cloud Storage")

// Client is a client that cannot be made.
type Client struct{}

// NewClient returns an error.
func NewClient(context.Context, ...option.ClientOption) (*Client, error) { return nil, errAbsent }

// Bucket names a bucket.
func (*Client) Bucket(string) *BucketHandle { return &BucketHandle{} }

// BucketHandle names a bucket.
type BucketHandle struct{}

// Object names an object of the bucket.
func (*BucketHandle) Object(string) *ObjectHandle { return &ObjectHandle{} }

// Objects lists nothing.
func (*BucketHandle) Objects(context.Context, *Query) *ObjectIterator { return &ObjectIterator{} }

// Attrs returns an error.
func (*BucketHandle) Attrs(context.Context) (*BucketAttrs, error) { return nil, errAbsent }

// BucketAttrs describes a bucket.
type BucketAttrs struct{}

// Query selects objects.
type Query struct{ Prefix string }

// ObjectIterator is an iterator without objects.
type ObjectIterator struct{}

// Next returns [iterator.Done].
func (*ObjectIterator) Next() (*ObjectAttrs, error) { return nil, iterator.Done }

// ObjectAttrs describes an object.
type ObjectAttrs struct{ Name string }

// ObjectHandle names an object.
type ObjectHandle struct{}

// NewWriter returns a writer that fails.
func (*ObjectHandle) NewWriter(context.Context) *Writer { return &Writer{} }

// NewReader returns an error.
func (*ObjectHandle) NewReader(context.Context) (*Reader, error) { return nil, errAbsent }

// Attrs returns an error.
func (*ObjectHandle) Attrs(context.Context) (*ObjectAttrs, error) { return nil, errAbsent }

// Writer is a writer that fails.
type Writer struct{}

// Write returns an error.
func (*Writer) Write([]byte) (int, error) { return 0, errAbsent }

// Close returns an error.
func (*Writer) Close() error { return errAbsent }

// CloseWithError returns an error.
func (*Writer) CloseWithError(error) error { return errAbsent }

// Reader is a reader that fails.
type Reader struct{}

// Read returns an error.
func (*Reader) Read([]byte) (int, error) { return 0, errAbsent }

// Close does nothing.
func (*Reader) Close() error { return nil }
