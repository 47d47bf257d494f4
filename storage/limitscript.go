package storage

// windowSeconds is the number of one-second buckets in a window. The current second is not over, so sixty whole ones
// and the current one together never let more than the limit through in any sixty seconds.
const windowSeconds = 61

// admitScript settles and admits for several tokens in one step, by the server's clock.
//
// A window is a hash: s the second it was last written, rt and tt the sums of requests and tokens, r<n> and t<n> the
// buckets of the second whose remainder by 61 is n. Leases are a sorted set of call -> expiry in ms. A refusal
// writes nothing. A batch whose answer was lost may come again: its calls keep the places they have, and only their
// requests and tokens count twice, for a minute.
//
//	KEYS   for each token: window, leases
//	ARGV   1: JSON, for each token [rpm, tpm, concurrency, [lease to release, …], [lease to renew, …],
//	       [second admitted, tokens to add, …], [requests, tokens, lease or "", …]]
//	       2: lease time in ms
//	answer for each token a line "<codes> <requests used> <tokens used> <reset ms> <retry ms, requests>
//	       <retry ms, tokens> <second>"; one code per call: 0 admitted, 1 too many requests, 2 too many tokens,
//	       3 too many at once
const admitScript = `
local time = redis.call('TIME')
local second = tonumber(time[1])
local ms = second * 1000 + math.floor(tonumber(time[2]) / 1000)
local lease_ms = tonumber(ARGV[2])
local lines = {}

for g, group in ipairs(cjson.decode(ARGV[1])) do
	local window, leases = KEYS[2 * g - 1], KEYS[2 * g]
	local rpm, tpm, concurrency, release, renew, corrections, calls = unpack(group)
	local now = second
	local s, rt, tt, r, t = now, 0, 0, 0, 0
	local found, dirty, expired = false, false, {}

	if #release > 0 then redis.call('ZREM', leases, unpack(release)) end
	for _, lease in ipairs(renew) do redis.call('ZADD', leases, ms + lease_ms, lease) end
	if #renew > 0 then redis.call('PEXPIRE', leases, lease_ms) end

	if (rpm > 0 or tpm > 0) and (#calls > 0 or #corrections > 0) then
		local slot = now % 61
		local state = redis.call('HMGET', window, 's', 'rt', 'tt', 'r' .. slot, 't' .. slot)
		if state[1] then
			found = true
			s, rt, tt = tonumber(state[1]), tonumber(state[2]), tonumber(state[3])
			if s > now then -- the clock went back
				now = s
				slot = now % 61
				state = redis.call('HMGET', window, 's', 'rt', 'tt', 'r' .. slot, 't' .. slot)
			end
			if s == now then
				r, t = tonumber(state[4] or 0), tonumber(state[5] or 0)
			elseif now - s >= 61 then
				redis.call('DEL', window)
				found, rt, tt = false, 0, 0
			else
				for j = s + 1, now do
					expired[#expired + 1] = 'r' .. j % 61
					expired[#expired + 1] = 't' .. j % 61
				end
				local old = redis.call('HMGET', window, unpack(expired))
				for j = 1, #old, 2 do
					rt = rt - tonumber(old[j] or 0)
					tt = tt - tonumber(old[j + 1] or 0)
				end
			end
		end

		for i = 1, #corrections, 2 do
			local at, tokens = corrections[i], corrections[i + 1]
			if at >= now or (at <= now - 61 and tokens > 0) then
				tokens = math.max(tokens, -t)
				t, tt, dirty = t + tokens, tt + tokens, true
			elseif at > now - 61 and at <= s and found then
				local bucket = 't' .. at % 61
				tokens = math.max(tokens, -tonumber(redis.call('HGET', window, bucket) or 0))
				redis.call('HINCRBY', window, bucket, tokens)
				tt, dirty = tt + tokens, true
			elseif tokens > 0 then
				t, tt, dirty = t + tokens, tt + tokens, true
			end
		end
	end

	local running = 0
	if concurrency > 0 and #calls > 0 then
		redis.call('ZREMRANGEBYSCORE', leases, '-inf', ms)
		local own = {} -- places that these very calls hold: the answer that said so was lost, and they ask again
		for i = 3, #calls, 3 do own[#own + 1] = calls[i] end
		redis.call('ZREM', leases, unpack(own))
		running = redis.call('ZCARD', leases)
	end

	local codes, taken = {}, {}
	local over_r, over_t
	for i = 1, #calls, 3 do
		local requests, tokens = calls[i], calls[i + 1]
		local code = 0
		if rpm > 0 and rt + requests > rpm then
			code = 1
			over_r = over_r or requests
		elseif tpm > 0 and tt + math.max(tokens, 1) > tpm then
			code = 2
			over_t = over_t or math.max(tokens, 1)
		elseif concurrency > 0 and running >= concurrency then
			code = 3
		else
			if rpm > 0 then r, rt, dirty = r + requests, rt + requests, true end
			if tpm > 0 then t, tt, dirty = t + tokens, tt + tokens, true end
			if concurrency > 0 then
				running = running + 1
				taken[#taken + 1] = ms + lease_ms
				taken[#taken + 1] = calls[i + 2]
			end
		end
		codes[#codes + 1] = code
	end
	if #taken > 0 then
		redis.call('ZADD', leases, unpack(taken))
		redis.call('PEXPIRE', leases, lease_ms)
	end

	local retry_r, retry_t = 0, 0
	if over_r or over_t then
		local buckets = {}
		if found then
			local all = redis.call('HGETALL', window)
			for i = 1, #all, 2 do buckets[all[i]] = tonumber(all[i + 1]) end
		end
		local function retry(kind, missing)
			for j = now - 60, now - 1 do
				if j <= s then
					missing = missing - (buckets[kind .. j % 61] or 0)
					if missing <= 0 then return (j + 61) * 1000 - ms end
				end
			end
			return (now + 61) * 1000 - ms
		end
		if over_r then retry_r = retry('r', rt + over_r - rpm) end
		if over_t then retry_t = retry('t', tt + over_t - tpm) end
	end

	if dirty then
		if #expired > 0 then redis.call('HDEL', window, unpack(expired)) end
		local slot = now % 61
		redis.call('HSET', window, 's', now, 'rt', rt, 'tt', tt, 'r' .. slot, r, 't' .. slot, t)
		if not found or s ~= now then redis.call('EXPIRE', window, 62) end
		s = now
	end
	local reset = 0
	if rt > 0 or tt > 0 then reset = (s + 61) * 1000 - ms end
	lines[g] = string.format('%s %d %d %d %d %d %d', table.concat(codes), rt, tt, reset, retry_r, retry_t, now)
end
return table.concat(lines, '\n')
`
