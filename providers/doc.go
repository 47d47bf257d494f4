// Package providers is the vocabulary of upstreams without any vendor's name: channels, calls, video jobs and the one error that a
// client may receive. Each vendor is a sub-package that imports only this package, upstream and rawjson of the product.
//
// It must not import anything of the product, nor any vendor, format, Redis, S3 or Temporal package.
package providers
