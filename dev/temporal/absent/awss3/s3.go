// Package s3 has the client of S3 that Temporal's server names. The server reaches none of its methods: the configuration of a client
// cannot be loaded. All of them return an error.
package s3

import (
	"context"
	"errors"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

var errAbsent = errors.New("the development server has no client of S3")

// Client is a client without a service.
type Client struct{}

// Options are the options of a client.
type Options struct {
	BaseEndpoint *string
	UsePathStyle bool
}

// NewFromConfig returns a client.
func NewFromConfig(aws.Config, ...func(*Options)) *Client { return &Client{} }

// The inputs and outputs of the five operations.
type (
	HeadBucketInput  struct{ Bucket *string }
	HeadBucketOutput struct{}

	HeadObjectInput  struct{ Bucket, Key *string }
	HeadObjectOutput struct{}

	PutObjectInput struct {
		Bucket, Key *string
		Body        io.Reader
	}
	PutObjectOutput struct{}

	GetObjectInput  struct{ Bucket, Key *string }
	GetObjectOutput struct{ Body io.ReadCloser }

	ListObjectsV2Input struct {
		Bucket, Prefix, Delimiter, ContinuationToken *string
		MaxKeys                                      *int32
	}
	ListObjectsV2Output struct {
		CommonPrefixes        []types.CommonPrefix
		Contents              []types.Object
		IsTruncated           *bool
		NextContinuationToken *string
	}
)

// HeadBucket returns an error.
func (*Client) HeadBucket(context.Context, *HeadBucketInput, ...func(*Options)) (*HeadBucketOutput, error) {
	return nil, errAbsent
}

// HeadObject returns an error.
func (*Client) HeadObject(context.Context, *HeadObjectInput, ...func(*Options)) (*HeadObjectOutput, error) {
	return nil, errAbsent
}

// PutObject returns an error.
func (*Client) PutObject(context.Context, *PutObjectInput, ...func(*Options)) (*PutObjectOutput, error) {
	return nil, errAbsent
}

// GetObject returns an error.
func (*Client) GetObject(context.Context, *GetObjectInput, ...func(*Options)) (*GetObjectOutput, error) {
	return nil, errAbsent
}

// ListObjectsV2 returns an error.
func (*Client) ListObjectsV2(context.Context, *ListObjectsV2Input, ...func(*Options)) (*ListObjectsV2Output, error) {
	return nil, errAbsent
}
