// Package generic adapts another gateway as an upstream, in the contract's own video dialect, so that gateways can be chained. Of the
// product it imports only providers and providers/upstream.
//
// Wire facts: the contract's generic video tasks (POST and GET /v1/video/generations, cancel). For gateways that deviate from it:
// github.com/QuantumNous/new-api (dto/task.go, model/task.go), the source of the path. It has the task in a "data" object, status words in
// capitals, and the link in result_url, in older versions in fail_reason.
package generic
