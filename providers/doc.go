// Package providers is the vocabulary of upstreams without any vendor's name: channels, calls, video jobs and the one
// error a client may learn of. Vendors live in sub-packages, one each, and know only this one and upstream.
//
// It must not import anything of the product, nor any vendor, format, Redis, S3 or Temporal package.
package providers
