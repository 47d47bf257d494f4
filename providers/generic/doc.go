// Package generic adapts another gateway of this kind as an upstream, in the contract's own video dialect, so that
// gateways chain. Of the product it imports providers and providers/upstream alone.
//
// Wire facts: the contract's generic video tasks (POST and GET /v1/video/generations, cancel), and for gateways that
// stray from it github.com/QuantumNous/new-api (dto/task.go, model/task.go), which the path comes from: the task in a
// "data" object, status words in capitals, its link in result_url and before that in fail_reason.
package generic
