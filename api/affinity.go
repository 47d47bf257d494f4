package api

import (
	"bytes"
	"hash/crc32"
	"net/http"

	"modelrelay/api/body"
	"modelrelay/providers"
)

// cacheKey is the field of the OpenAI format with which a client says which calls share a beginning. It is no field of
// the contract, so it passes unchecked.
const cacheKey = "prompt_cache_key"

// maxPrefix bounds what is looked at of each part of a beginning, in bytes. What differs only behind it shares a channel.
const maxPrefix = 16 << 10

// affinityOf is the number that calls share whose beginning an upstream may still have in its cache, 0 for calls whose
// client did not ask for one: they spread by weight. Callers share none.
func affinityOf(r *http.Request, endpoint providers.Endpoint, b *body.JSON) uint64 {
	switch endpoint.Format {
	case providers.OpenAI:
		if key := b.Value(cacheKey); len(key) > 0 {
			return affinity(r, b, key)
		}
	case providers.Anthropic:
		// A breakpoint within the messages alone moves with every turn.
		tools, system := b.Value("tools"), b.Value("system")
		mark := []byte(`"cache_control"`)
		if b.Value("cache_control") != nil || bytes.Contains(tools, mark) || bytes.Contains(system, mark) {
			return affinity(r, b, tools, system)
		}
	case providers.Gemini, providers.VendorC, providers.Generic: // no mark of the client's that a beginning is shared
	}
	return 0
}

func affinity(r *http.Request, b *body.JSON, parts ...[]byte) uint64 {
	x := exchangeOf(r.Context())
	if x == nil || x.caller == nil {
		return 0
	}
	table := crc32.MakeTable(crc32.Castagnoli) // one instruction per eight bytes on common machines
	sum := crc32.Checksum([]byte(x.caller.ID), table)
	sum = crc32.Update(sum, table, b.Value("model"))
	size := 0
	for _, part := range parts {
		part = part[:min(len(part), maxPrefix)]
		sum = crc32.Update(sum, table, part)
		size += len(part)
	}
	return uint64(sum)<<32 | uint64(size+1)
}
